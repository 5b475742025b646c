"""Noting that a session is used, and ending it: one's own, or within a tenant (R-SEC-11)."""

from contextlib import suppress
from datetime import timedelta
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.models import Q

from tenancy.actions import write_audit_entry
from tenancy.core.errors import NotFound
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import BrowserSession, KnownDevice, Person, TenantSession
from tenancy.web.client_address import Visitor

NOTED_EVERY = timedelta(minutes=1)


def note_activity(session: BrowserSession, visitor: Visitor) -> None:
    """Note that a person did something with a session, once a minute at the most.

    A database that takes no more writes (a full disk) still lets the person read: the note is left out.
    """
    with suppress(DatabaseError), transaction.atomic():
        now, seen = database_now(), _build_visitor_fields(visitor)
        BrowserSession.objects.filter(
            _build_refresh_condition(visitor, now - NOTED_EVERY), id=session.id
        ).update(last_seen_at=now, **seen)


def note_presence(
    tenant_id: UUID, person: Person, session: BrowserSession, known: TenantSession | None, visitor: Visitor
) -> None:
    """As `note_activity`, of the session within a tenant, where it is written down from its first page on.
    `known` is that row, None where there is none yet. Owns the transaction."""
    with suppress(DatabaseError), tenant_transaction(tenant_id):
        now, seen = database_now(), _build_visitor_fields(visitor)
        if known is None:
            TenantSession.objects.get_or_create(
                tenant_id=tenant_id, session_id=session.id,
                defaults={"person": person, "began_at": now, "last_seen_at": now, **seen},
            )  # fmt: skip
        else:
            TenantSession.objects.filter(
                _build_refresh_condition(visitor, now - NOTED_EVERY), id=known.id
            ).update(last_seen_at=now, **seen)


def end_session(person: Person, session_id: UUID) -> None:
    """End one session of a person's own, everywhere. Raises NotFound."""
    ended, _ = BrowserSession.objects.filter(id=session_id, person=person).delete()
    if not ended:
        raise NotFound


def end_other_sessions(person: Person, kept: UUID | None) -> int:
    """End a person's own sessions but one; how many they were."""
    others = BrowserSession.objects.filter(person=person)
    ended, _ = (others if kept is None else others.exclude(id=kept)).delete()
    return ended


def end_tenant_session(tenant_id: UUID, tenant_session: UUID, *, by: UUID, reason: str) -> Person:
    """End a session within this tenant, as its administrator: it does nothing here any more. In other tenants
    of the person's it goes on. Audited; the same again changes nothing. Outermost verb: owns the transaction.

    Raises NotFound, also for another tenant's.
    """
    with tenant_transaction(tenant_id):
        row = TenantSession.objects.select_related("person").filter(id=tenant_session).first()
        if row is None:
            raise NotFound
        ended = TenantSession.objects.filter(id=row.id, ended_at=None)
        if ended.update(ended_at=database_now(), ended_by=by):
            write_audit_entry(
                tenant_id, by, verb="session.end", object=f"person:{row.person_id}",
                before={"session": str(row.id), "browser": row.browser}, after={"ended": True},
                reason=reason,
            )  # fmt: skip
        return row.person


def forget_device(person: Person, device_id: UUID) -> None:
    """Forget one of a person's own browsers: it is a stranger's from now on. Raises NotFound."""
    forgotten, _ = KnownDevice.objects.filter(id=device_id, person=person).delete()
    if not forgotten:
        raise NotFound


def _build_visitor_fields(visitor: Visitor) -> dict[str, str | None]:
    address = None if visitor.address is None else str(visitor.address)
    return {"address": address, "browser": visitor.browser}


def _build_refresh_condition(visitor: Visitor, long_ago: object) -> Q:
    """The condition of a row that is to be written: it was long ago, or somewhere else."""
    here = Q(**{name: value for name, value in _build_visitor_fields(visitor).items() if value is not None})
    return Q(last_seen_at__lt=long_ago) | ~here
