"""A connection lost around COMMIT: ask the database what it knows of the run (docs/ring.md)."""

from collections.abc import Callable, Iterator
from enum import Enum
from sys import exc_info
from time import monotonic, sleep
from typing import Any

from django.db import InterfaceError, OperationalError, connection

from orchestrator.actions.claimed_run import Hand
from tenancy.db.tenant_context import raw_cursor, tenant

PATIENCE_SECONDS = 120.0
STEP_SECONDS = 0.2
TRIES = 10
FIRST_WAIT, LONGEST_WAIT = 0.1, 2.0
WHERE = "SELECT fence, version FROM orchestrator_run WHERE id = %(run)s"


class Landing(Enum):
    """One version higher: it landed. The same: it did not, do it again. Else somebody else has the run."""

    LANDED = "landed"
    NOT_LANDED = "not_landed"
    LOST = "lost"


def backoff() -> Iterator[Callable[[], None]]:
    """Tries of a commit, each with the wait before the next: 0.1 s, doubling to 2 s, some fifteen seconds in
    all.

    The last wait raises the error that is being handled.
    """
    for attempt in range(TRIES):
        seconds = min(LONGEST_WAIT, FIRST_WAIT * 2**attempt)
        yield lambda seconds=seconds: sleep(seconds)  # type: ignore[misc]
    yield _give_up


def _give_up() -> None:
    error = exc_info()[1]
    assert error is not None
    raise error


def where_it_landed(hand: Hand) -> Landing:
    """Reconnect for as long as it takes, within reason, and compare. Raises OperationalError after that."""
    until = monotonic() + PATIENCE_SECONDS
    while True:
        connection.close()
        try:
            fence, version = _read(hand)
        except (OperationalError, InterfaceError):
            if monotonic() > until:
                raise
            sleep(STEP_SECONDS)
            continue
        if fence != hand.fence:
            return Landing.LOST
        return {hand.version: Landing.NOT_LANDED, hand.version + 1: Landing.LANDED}.get(version, Landing.LOST)


def _read(hand: Hand) -> tuple[int, int]:
    with tenant(hand.tenant):
        cursor = raw_cursor()
        cursor.execute(WHERE, {"run": hand.run})
        row: tuple[Any, ...] | None = cursor.fetchone()
    return (int(row[0]), int(row[1])) if row is not None else (-1, -1)
