"""Queries of platform administrators and of their log (R-SEC-10). Nothing here belongs to a tenant."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from tenancy.core.errors import Forbidden
from tenancy.models import Person
from tenancy.platform_models import PlatformAdmin, PlatformEntry

PAGE = 50


class PlatformActor(NamedTuple):
    """A platform administrator who acts, with the key if the caller is a program."""

    person: UUID
    key: UUID | None = None


class Administrators(NamedTuple):
    """The number of a tenant's administrators, and how many have yet to sign in or be confirmed."""

    total: int = 0
    waiting: int = 0


def is_platform_admin(person_id: UUID) -> bool:
    """Return whether the person is a platform administrator now."""
    return PlatformAdmin.objects.filter(person_id=person_id, person__is_active=True).exists()


def check_platform_admin(actor: PlatformActor | None) -> None:
    """Check that the actor is a platform administrator now. None is a caller with shell access.

    Raises: Forbidden.
    """
    if actor is not None and not is_platform_admin(actor.person):
        raise Forbidden(reason="a platform administrator opens, changes and suspends tenants")


def platform_admins() -> list[PlatformAdmin]:
    """Return all platform administrators with their people, by e-mail address."""
    return list(PlatformAdmin.objects.select_related("person").order_by("person__email"))


def count_administrators(asker: UUID, tenants: Iterable[UUID]) -> Mapping[UUID, Administrators]:
    """Return administrator counts of these tenants; empty if `asker` is no platform administrator.

    One of the closed list of look-ups that cross tenants.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT of_tenant, administrators, waiting FROM tenant_administrators(%s, %s)",
            (asker, list(tenants)),
        )
        return {row[0]: Administrators(row[1], row[2]) for row in cursor.fetchall()}


def platform_entries(start: int = 0) -> tuple[list[PlatformEntry], bool]:
    """Return a page of the platform administrators' log, newest first, and whether there is more."""
    rows = PlatformEntry.objects.select_related("person").order_by("-at", "-id")
    found = list(rows[start : start + PAGE + 1])
    return found[:PAGE], len(found) > PAGE


def first_administrator_of(tenant_id: UUID) -> str:
    """Return the address last invited as a tenant's first administrator, or "" if none is recorded."""
    invited = PlatformEntry.objects.filter(object=f"tenant:{tenant_id}", verb="tenant.invite")
    last = invited.order_by("-at", "-id").first()
    return "" if last is None else str(last.after["administrator"])


def person_by_email(email: str) -> Person | None:
    """Return the person with this address, ignoring case."""
    return Person.objects.filter(email__iexact=email).first()
