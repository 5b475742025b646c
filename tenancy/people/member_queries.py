"""Queries of a tenant's names, members, keys and audit log (R-UI-9). In the tenant's context."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

import orjson
from django.db.models import Q, QuerySet

from tenancy.core.roles import Role
from tenancy.core.timestamps import read_moment
from tenancy.db.clock import database_now
from tenancy.models import ApiKey, AuditEntry, Membership, Person, Principal, Tenant
from tenancy.people.relations import people_behind

PAGE = 50
LONGEST = 200
STILL_COUNTS = timedelta(days=1)
FRESH_KEY_DOMAIN = "@keys.invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonWithRoles:
    """A person with their memberships, one per role."""

    person: Person
    principal: UUID | None
    members: tuple[Membership, ...]

    @property
    def is_invited(self) -> bool:
        """Return whether the person has neither set a password nor signed in yet."""
        return self.person.last_login is None and not self.person.has_usable_password()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Filter of the audit log; "" does not filter. `object` is a prefix."""

    verb: str = ""
    object: str = ""
    by: UUID | None = None

    @property
    def any(self) -> bool:
        """Return whether any filter is set."""
        return bool(self.verb or self.object or self.by)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    """A page of the audit log, newest first; `following` is the cursor of the next one, or ""."""

    entries: tuple[AuditEntry, ...]
    names: Mapping[UUID, str]
    objects: Mapping[str, str]
    following: str = ""
    verbs: tuple[str, ...] = field(default=())


def names_of(principals: Iterable[UUID | None]) -> dict[UUID, str]:
    """Return the names of principals: a person's current name, a key's label."""
    ids = sorted({one for one in principals if one is not None})
    rows = Principal.objects.filter(id__in=ids).select_related("owner")
    return {row.id: row.owner.name if row.kind == "person" else row.label for row in rows}


def list_people(person_id: UUID | None = None) -> list[PersonWithRoles]:
    """Return the tenant's people with their roles, by name; or only the person with this id."""
    members: dict[UUID, list[Membership]] = {}
    rows = Membership.objects.select_related("person").order_by("person__name", "person_id", "role")
    for member in rows if person_id is None else rows.filter(person_id=person_id):
        members.setdefault(member.person_id, []).append(member)
    acting = dict(
        Principal.objects.filter(kind="person", owner_id__in=list(members)).values_list("owner_id", "id")
    )
    return [
        PersonWithRoles(person=own[0].person, principal=acting.get(person), members=tuple(own))
        for person, own in members.items()
    ]


def count_admins() -> int:
    """Return how many active people are administrators of the tenant."""
    return acting_admins().count()


def acting_admins() -> "QuerySet[Membership]":
    """Return the memberships of the administrators who can act."""
    return Membership.objects.filter(role=Role.ADMIN.value, person__is_active=True, awaits_confirmation=False)


def another_admin(principal: UUID) -> bool:
    """Return whether another active person is an administrator, or was one within the last day.

    "Another" excludes the people behind this principal. The last day counts so that an administrator who
    removes a colleague's role cannot decide alone at once.
    """
    behind = people_behind((principal,)).get(principal, frozenset())
    left = AuditEntry.objects.filter(
        verb="member.remove", before__role=Role.ADMIN.value, at__gt=database_now() - STILL_COUNTS
    )
    others = left.exclude(before__person__in=[str(one) for one in behind])
    return acting_admins().exclude(person_id__in=behind).exists() or others.exists()


def list_api_keys() -> list[ApiKey]:
    """Return the tenant's keys, newest first, including revoked and expired ones."""
    return list(ApiKey.objects.select_related("principal__owner").order_by("-created_at", "-id"))


def audit_page(sought: AuditFilter, cursor: str = "") -> AuditPage:
    """Return a page of the audit log. An invalid cursor gives the first page."""
    rows = _filter_audit_entries(sought)
    if (beyond := _decode_cursor(cursor)) is not None:
        at, row = beyond
        rows = rows.filter(Q(at__lt=at) | Q(at=at, id__lt=row))
    found = list(rows.order_by("-at", "-id")[: PAGE + 1])
    shown = tuple(found[:PAGE])
    following = _encode_cursor(shown[-1]) if len(found) > PAGE else ""
    verbs = tuple(AuditEntry.objects.order_by("verb").values_list("verb", flat=True).distinct())
    return AuditPage(
        entries=shown, names=names_of(entry.principal for entry in shown), following=following, verbs=verbs,
        objects=object_names(entry.object for entry in shown),
    )  # fmt: skip


def object_names(objects: Iterable[str]) -> dict[str, str]:
    """Return the names of audited objects that tenancy stores: people, memberships, keys, the tenant.

    A deleted object has no name.
    """
    ids: dict[str, list[UUID]] = {}
    for kind, _, told in (one.partition(":") for one in set(objects)):
        with suppress(ValueError):
            ids.setdefault(kind, []).append(UUID(told))
    members = Membership.objects.filter(
        Q(id__in=ids.get("member", [])) | Q(person_id__in=ids.get("person", []))
    )
    named: dict[str, str] = {}
    for member in members.select_related("person"):
        named[f"member:{member.id}"] = f"{member.person.name}, {member.role}"
        named[f"person:{member.person_id}"] = member.person.name
    for key in ApiKey.objects.filter(id__in=ids.get("key", [])):
        named[f"key:{key.id}"] = key.label
    for house in Tenant.objects.filter(id__in=ids.get("tenant", [])):
        named[f"tenant:{house.id}"] = house.name
    return named


def _filter_audit_entries(sought: AuditFilter) -> "QuerySet[AuditEntry]":
    rows = AuditEntry.objects.all()
    if sought.verb:
        rows = rows.filter(verb=sought.verb)
    if sought.object:
        rows = rows.filter(object__startswith=sought.object)
    if sought.by is not None:
        rows = rows.filter(principal=sought.by)
    return rows


def _encode_cursor(entry: AuditEntry) -> str:
    return urlsafe_b64encode(orjson.dumps([entry.at.isoformat(), str(entry.id)])).decode().rstrip("=")


def _decode_cursor(cursor: str) -> tuple[datetime, UUID] | None:
    if not cursor or len(cursor) > LONGEST:
        return None
    try:
        at, row = orjson.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        return read_moment(at), UUID(row)
    except (ValueError, TypeError, AttributeError):
        return None
