"""Roles, scopes, and the one table between them (R-SEC-2)."""

from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple


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
    OPERATE = "operate"
    ADMIN = "admin"


SCOPES: dict[Role, tuple[Scope, ...]] = {
    Role.OPERATOR: (Scope.SUBMIT, Scope.READ, Scope.INSPECT, Scope.OPERATE),
    Role.REVIEWER: (Scope.READ, Scope.INSPECT, Scope.DECIDE),
    Role.ADMIN: (Scope.SUBMIT, Scope.READ, Scope.INSPECT, Scope.DECIDE, Scope.OPERATE, Scope.ADMIN),
    Role.AUDITOR: (Scope.READ, Scope.INSPECT),
    Role.CLIENT: (Scope.SUBMIT, Scope.READ),
}


class Authority(NamedTuple):
    """How far the word of one membership reaches. No queues: every queue; None and "": no limit."""

    queues: tuple[str, ...] = ()
    max_amount: Decimal | None = None
    max_risk: str = ""


def scopes_of(roles: tuple[Role, ...]) -> tuple[Scope, ...]:
    """The scopes of all roles together, in the order of `Scope`."""
    held = [scope for role in roles for scope in SCOPES[role]]
    return tuple(scope for scope in Scope if scope in held)
