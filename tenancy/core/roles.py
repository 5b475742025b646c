"""Roles, scopes, and the one table between them (R-SEC-2)."""

from decimal import Decimal
from enum import StrEnum
from typing import Final, NamedTuple


class Role(StrEnum):
    """What a person is in a tenant."""

    OPERATOR = "operator"
    REVIEWER = "reviewer"
    ADMIN = "admin"
    AUDITOR = "auditor"
    CLIENT = "client"


class Scope(StrEnum):
    """What a key or a session may do. `inspect` is to read who belongs to the tenant, its keys, its private
    places and its audit log."""

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


class Authority(NamedTuple):
    """How far the word of one membership reaches. No queues: none, `*`: every queue; None and "": no
    limit."""

    queues: tuple[str, ...] = EVERY_QUEUE
    max_amount: Decimal | None = None
    max_risk: str = ""

    @property
    def has_every_queue(self) -> bool:
        """Whether no queue is left out."""
        return "*" in self.queues


def scopes_of(roles: tuple[Role, ...]) -> tuple[Scope, ...]:
    """The scopes of all roles together, in the order of `Scope`."""
    held = [scope for role in roles for scope in SCOPES[role]]
    return tuple(scope for scope in Scope if scope in held)
