"""The second wall: what a gateway asks before it sends, whatever the machine claims (R-BUDGET-17).

The first wall is the commit that wrote the intent with its reservation. This one asks the database again, at
the moment of sending, and each gateway enforces output limit, deadline and egress by itself.
"""

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

import structlog
from django.db import Error

log = structlog.get_logger(__name__)
UNREACHABLE = "unreachable"
# Nobody could be asked, or the worker slept through its lease or its deadline: nothing was sent, nothing is
# forbidden.
PASSING = (UNREACHABLE, "fence", "intent")


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRefused:
    """The effect must not be sent; `reason` is a closed word, such as `no_intent` or `stopped`."""

    reason: str

    @property
    def transient(self) -> bool:
        """Whether asking again later may help: with a new intent, under a live lease, of a database that
        answers."""
        return self.reason in PASSING


class SendAuthorization(Protocol):
    """The right to perform one effect once."""

    @property
    def run(self) -> UUID:
        """The run that asks: rates are counted by it."""
        ...

    def check(self) -> SendRefused | None:
        """None when the effect may be sent now: its intent is committed, unexpired, reserved, under the
        current fence.
        """
        ...


def check_before_send(permit: SendAuthorization) -> SendRefused | None:
    """Ask the permit; a database that cannot answer has not permitted anything."""
    try:
        return permit.check()
    except Error as error:
        log.warning("permit.unreachable", error=type(error).__name__)
        return SendRefused(reason=UNREACHABLE)
