"""Roles, scopes, and the one table between them (R-SEC-2)."""

from decimal import Decimal
from enum import StrEnum
from typing import Final, NamedTuple


class Role(StrEnum):
    """Role of a person in a tenant."""

    OPERATOR = "operator"
    REVIEWER = "reviewer"
    ADMIN = "admin"
    AUDITOR = "auditor"
    CLIENT = "client"


class Scope(StrEnum):
    """Permission of a key or a session.

    `inspect` allows reading who belongs to the tenant, its keys, its audit log, and what the tenant can
    reach: private places, tool servers, databases, the mail server, models.
    """

    SUBMIT = "submit"
    READ = "read"
    INSPECT = "inspect"
    DECIDE = "decide"
    REVEAL = "reveal"
    OPERATE = "operate"
    ADMIN = "admin"


SCOPES: dict[Role, tuple[Scope, ...]] = {
    Role.OPERATOR: (Scope.SUBMIT, Scope.READ, Scope.INSPECT, Scope.OPERATE),
    Role.REVIEWER: (Scope.READ, Scope.INSPECT, Scope.DECIDE, Scope.REVEAL),
    Role.ADMIN: (
        *(Scope.SUBMIT, Scope.READ, Scope.INSPECT, Scope.DECIDE),
        *(Scope.REVEAL, Scope.OPERATE, Scope.ADMIN),
    ),
    Role.AUDITOR: (Scope.READ, Scope.INSPECT),
    Role.CLIENT: (Scope.SUBMIT, Scope.READ),
}


EVERY_QUEUE: Final = ("*",)
"""What a membership names that decides in every queue. Without a name it decides in none."""


RISKS: Final = ("read_only", "local_write", "network", "delegated", "destructive")
"""The risk classes of tools, from the least to the greatest."""


class Authority(NamedTuple):
    """Limits of the decisions that one membership allows.

    Empty `queues` means no queue, `*` means every queue; a `max_amount` of None and a `max_risk` of "" mean
    no limit.
    """

    queues: tuple[str, ...] = EVERY_QUEUE
    max_amount: Decimal | None = None
    max_risk: str = ""

    @property
    def has_every_queue(self) -> bool:
        """Return whether every queue is included."""
        return "*" in self.queues

    def reaches_beyond(self, other: "Authority") -> bool:
        """Return whether this authority allows something that the other does not allow."""
        if not other.has_every_queue and not set(self.queues) <= set(other.queues):
            return True
        if other.max_amount is not None and (self.max_amount is None or self.max_amount > other.max_amount):
            return True
        return bool(other.max_risk) and _rank_risk(self.max_risk) > _rank_risk(other.max_risk)


def _rank_risk(risk: str) -> int:
    return RISKS.index(risk) if risk in RISKS else len(RISKS)


def scopes_of(roles: tuple[Role, ...]) -> tuple[Scope, ...]:
    """Return the scopes of all roles together, in the order of `Scope`."""
    held = [scope for role in roles for scope in SCOPES[role]]
    return tuple(scope for scope in Scope if scope in held)
