"""Who administers the platform, and what they did (R-SEC-10). Reads; none of it belongs to a tenant."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from tenancy.core.errors import Forbidden
from tenancy.models import Person
from tenancy.platform_models import PlatformAdmin, PlatformEntry

PAGE = 50


class PlatformActor(NamedTuple):
    """A platform administrator who acts, by a key of theirs where it is a program."""

    person: UUID
    key: UUID | None = None


class Administrators(NamedTuple):
    """How many administrators a tenant has, and how many of them have yet to sign in or to be confirmed."""

    total: int = 0
    waiting: int = 0


def is_platform_admin(person_id: UUID) -> bool:
    """True if the person administers the platform today."""
    return PlatformAdmin.objects.filter(person_id=person_id, person__is_active=True).exists()


def check_platform_admin(actor: PlatformActor | None) -> None:
    """Raises Forbidden for whoever does not administer the platform today. None is whoever has the shell."""
    if actor is not None and not is_platform_admin(actor.person):
        raise Forbidden(reason="a platform administrator opens, changes and suspends tenants")


def platform_admins() -> list[PlatformAdmin]:
    """All of them by e-mail address, with their people."""
    return list(PlatformAdmin.objects.select_related("person").order_by("person__email"))


def count_administrators(asker: UUID, tenants: Iterable[UUID]) -> Mapping[UUID, Administrators]:
    """The numbers of administrators of these tenants, for a platform administrator; nothing for anybody
    else. Of the closed list of look-ups that cross tenants."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT of_tenant, administrators, waiting FROM tenant_administrators(%s, %s)",
            (asker, list(tenants)),
        )
        return {row[0]: Administrators(row[1], row[2]) for row in cursor.fetchall()}


def platform_entries(start: int = 0) -> tuple[list[PlatformEntry], bool]:
    """A page of what platform administrators did, newest first, and whether there is more."""
    rows = PlatformEntry.objects.select_related("person").order_by("-at", "-id")
    found = list(rows[start : start + PAGE + 1])
    return found[:PAGE], len(found) > PAGE


def first_administrator_of(tenant_id: UUID) -> str:
    """The address that was invited last to administer a tenant first, or "" where none is on record."""
    invited = PlatformEntry.objects.filter(object=f"tenant:{tenant_id}", verb="tenant.invite")
    last = invited.order_by("-at", "-id").first()
    return "" if last is None else str(last.after["administrator"])


def person_by_email(email: str) -> Person | None:
    """The person with this address, whatever its case."""
    return Person.objects.filter(email__iexact=email).first()
