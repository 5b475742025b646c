"""Queries of people's sessions, known browsers and failed sign-ins (R-SEC-11)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from tenancy.core.sign_in.limits import LONGEST, LimitKind, reached_limit
from tenancy.models import BrowserSession, FailedSignIn, KnownDevice, Membership, Person, TenantSession
from tenancy.web.session_store import build_live_session_filter

SHOWN: Final = 200
MOST_READ: Final = 10_000
CROWDED: Final = timedelta(minutes=5)
"""How long an address waits at which very many tries failed, whoever's they were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSession:
    """A session as its person sees it."""

    row: BrowserSession
    is_current: bool


class Wait(NamedTuple):
    """A sign-in limit in force: at an address, in a browser, or ("") everywhere that is new to the person."""

    kind: LimitKind
    where: str
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedPerson:
    """A person and the sign-in limits in force for that person."""

    person: Person
    waits: tuple[Wait, ...]


def own_sessions(person: Person, current: UUID | None) -> list[OwnSession]:
    """Return a person's sessions, newest first."""
    rows = BrowserSession.objects.filter(build_live_session_filter(), person=person).order_by("-started_at")[
        :SHOWN
    ]
    return [OwnSession(row=row, is_current=row.id == current) for row in rows]


def own_devices(person: Person) -> list[KnownDevice]:
    """Return the browsers in which a person has signed in, most recently used first."""
    return list(KnownDevice.objects.filter(person=person).order_by("-last_used_at")[:SHOWN])


def own_failures(person: Person) -> list[FailedSignIn]:
    """Return the failed attempts to sign in as a person, newest first."""
    return list(FailedSignIn.objects.filter(person=person).order_by("-at")[:SHOWN])


def tenant_sessions() -> list[TenantSession]:
    """Return the sessions that act in this tenant, by person, newest first. In the tenant's context."""
    going = BrowserSession.objects.filter(build_live_session_filter())
    rows = TenantSession.objects.filter(ended_at=None, session__in=going).select_related("person")
    return list(rows.order_by("person__name", "person_id", "-began_at")[:SHOWN])


def tenant_failures() -> list[FailedSignIn]:
    """Return the failed attempts to sign in as a person of this tenant, newest first.

    In the tenant's context.
    """
    people = set(Membership.objects.values_list("person_id", flat=True))
    rows = FailedSignIn.objects.filter(person_id__in=people).select_related("person")
    return list(rows.order_by("-at")[:SHOWN])


def limited_people(now: datetime) -> list[LimitedPerson]:
    """Return the people of this tenant for whom a sign-in limit is in force, by name.

    In the tenant's context.
    """
    people = set(Membership.objects.values_list("person_id", flat=True))
    rows = FailedSignIn.objects.filter(person_id__in=people, at__gt=now - LONGEST, lifted_at=None)
    found: dict[Person, list[FailedSignIn]] = {}
    for row in rows.select_related("person").order_by("person__name", "-at")[:MOST_READ]:
        if row.person is not None:
            found.setdefault(row.person, []).append(row)
    limited = [LimitedPerson(person=person, waits=_compute_waits(own, now)) for person, own in found.items()]
    return [one for one in limited if one.waits]


def _compute_waits(rows: list[FailedSignIn], now: datetime) -> tuple[Wait, ...]:
    """Return the limits in force for the person of these failures, which are sorted newest first."""
    failed: dict[tuple[LimitKind, object, str], list[datetime]] = {}
    for row in (row for row in rows if row.step != "refused"):
        for count in _list_failure_counters(row):
            failed.setdefault(count, []).append(row.at)
    waits = [
        Wait(kind, where, refusal.until)
        for (kind, _, where), times in failed.items()
        if (refusal := reached_limit(kind, times, now)) is not None
    ]
    told = {wait.where for wait in waits if wait.kind is not LimitKind.DEVICE}
    if "" in told:
        return tuple(waits)
    crowded = {
        row.source: Wait(LimitKind.ADDRESS, row.source, row.at + CROWDED)
        for row in rows
        if row.step == "refused" and row.device is None and row.at > now - CROWDED
    }
    return (*waits, *(wait for source, wait in crowded.items() if source not in told))


def _list_failure_counters(row: FailedSignIn) -> Iterable[tuple[LimitKind, object, str]]:
    """Return the counters that a failure belongs to: kind, counted object, and display name."""
    if row.device is not None:
        return [(LimitKind.DEVICE, row.device, row.browser)]
    return [
        (LimitKind.ADDRESS_AND_ACCOUNT, row.source, row.source), (LimitKind.ACCOUNT, None, ""),
    ]  # fmt: skip


def session_within(session: UUID) -> TenantSession | None:
    """Return this tenant's record of a session, by the session's id. In the tenant's context."""
    return TenantSession.objects.filter(session_id=session).first()
