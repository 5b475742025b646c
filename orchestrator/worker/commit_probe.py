"""A connection lost around COMMIT: ask the database what it knows of the run (docs/ring.md)."""

from collections.abc import Callable, Iterator
from enum import Enum
from sys import exc_info
from time import monotonic, sleep
from typing import Any

from django.db import InterfaceError, OperationalError, connection

from orchestrator.commit.claimed_run import ClaimedRun
from tenancy.db.tenant_context import raw_cursor, tenant_transaction

PATIENCE_SECONDS = 120.0
STEP_SECONDS = 0.2
TRIES = 10
FIRST_WAIT, LONGEST_WAIT = 0.1, 2.0
WHERE = "SELECT fence, version FROM orchestrator_run WHERE id = %(run)s"


class CommitState(Enum):
    """One version higher: it landed. The same: it did not, do it again. Else somebody else has the run."""

    LANDED = "landed"
    NOT_LANDED = "not_landed"
    LOST = "lost"


def iterate_backoff() -> Iterator[Callable[[], None]]:
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


def where_it_landed(hand: ClaimedRun) -> CommitState:
    """Reconnect for as long as it takes, within reason, and compare. Raises OperationalError after that."""
    until = monotonic() + PATIENCE_SECONDS
    while True:
        connection.close()
        try:
            fence, version = _load_fence_and_version(hand)
        except (OperationalError, InterfaceError):
            if monotonic() > until:
                raise
            sleep(STEP_SECONDS)
            continue
        if fence != hand.fence:
            return CommitState.LOST
        return {hand.version: CommitState.NOT_LANDED, hand.version + 1: CommitState.LANDED}.get(
            version, CommitState.LOST
        )


def _load_fence_and_version(hand: ClaimedRun) -> tuple[int, int]:
    with tenant_transaction(hand.tenant):
        cursor = raw_cursor()
        cursor.execute(WHERE, {"run": hand.run})
        row: tuple[Any, ...] | None = cursor.fetchone()
    return (int(row[0]), int(row[1])) if row is not None else (-1, -1)
