"""The second guard: each gateway's check before it sends, independent of the core (R-BUDGET-17).

The first guard is the commit that wrote the intent with its reservation. The second guard queries the
database again at the moment of sending, and each gateway enforces output limit, deadline and egress by
itself.
"""

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

import structlog
from django.db import Error

log = structlog.get_logger(__name__)
UNREACHABLE = "unreachable"
# The database could not be reached, or the worker overslept its lease or its deadline: nothing was sent,
# and nothing is forbidden.
PASSING = (UNREACHABLE, "fence", "intent")


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRefused:
    """The effect must not be sent; `reason` is a code such as `no_intent` or `stopped`."""

    reason: str

    @property
    def transient(self) -> bool:
        """True if a later attempt may succeed.

        A later attempt has a new intent, a live lease, or a database that answers.
        """
        return self.reason in PASSING


class SendAuthorization(Protocol):
    """The right to perform one effect once."""

    @property
    def run(self) -> UUID:
        """The run of the effect: rates are counted by it."""
        ...

    def check(self) -> SendRefused | None:
        """Return None when the effect may be sent now.

        Its intent must be committed, unexpired, reserved, and under the current fence.
        """
        ...


def check_before_send(permit: SendAuthorization) -> SendRefused | None:
    """Check the permit; a database that cannot answer permits nothing."""
    try:
        return permit.check()
    except Error as error:
        log.warning("permit.unreachable", error=type(error).__name__)
        return SendRefused(reason=UNREACHABLE)
