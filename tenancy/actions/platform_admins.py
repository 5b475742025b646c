"""Giving and taking what platform administrators are and show, and writing down what they do (R-SEC-10).

Who administers the platform is written by the owner of the database alone, so by whoever has the shell: the
functions with `using` are called by `manage.py platform` with the owner's connection.
"""

import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db import DatabaseError, connections, transaction
from django.db.models import Q

from tenancy.actions import KEY_LIFE, TOUCHED_EVERY
from tenancy.core.errors import NotFound
from tenancy.core.keys import SECRET_BYTES, format_api_key, hash_key_secret, parse_api_key
from tenancy.db.ids import fresh_id
from tenancy.models import Person
from tenancy.people.platform_admins import PlatformActor
from tenancy.platform_models import PlatformAdmin, PlatformEntry, PlatformKey


class NewPlatformKey(NamedTuple):
    """A key just made; `clear` is never shown again."""

    key: PlatformKey
    clear: str


def add_platform_admin(person: Person, *, reason: str, using: str) -> bool:
    """Make a person a platform administrator; returns False if they are one. Audited. Outermost verb.

    Whoever has never signed in gets another unusable password, which ends every link that was handed out for
    the first one: a tenant's administrator who saw it would be a platform administrator.
    """
    with transaction.atomic(using=using):
        _, made = PlatformAdmin.objects.using(using).get_or_create(person_id=person.id)
        if not made:
            return False
        if not person.has_usable_password():
            person.set_unusable_password()
            Person.objects.using(using).filter(id=person.id).update(password=person.password)
        _note_by_shell(using, "platform.add", f"person:{person.id}", {"email": person.email}, reason)
        return True


def remove_platform_admin(person: Person, *, reason: str, using: str) -> None:
    """Take it from a person and revoke their keys of the platform; audited. Outermost verb. Raises
    NotFound."""
    with transaction.atomic(using=using):
        removed, _ = PlatformAdmin.objects.using(using).filter(person_id=person.id).delete()
        if not removed:
            raise NotFound
        held = PlatformKey.objects.using(using).filter(person_id=person.id, revoked_at=None)
        held.update(revoked_at=_get_database_time(using))
        _note_by_shell(using, "platform.remove", f"person:{person.id}", {"email": person.email}, reason)


def create_platform_key(
    person: Person, *, label: str, expires_in: timedelta = KEY_LIFE, using: str
) -> NewPlatformKey:
    """Make a key for a platform administrator; audited. Outermost verb. Raises NotFound for anybody else."""
    with transaction.atomic(using=using):
        if not PlatformAdmin.objects.using(using).filter(person_id=person.id).exists():
            raise NotFound
        key_id = fresh_id()
        clear = format_api_key(key_id, secrets.token_bytes(SECRET_BYTES))
        known = parse_api_key(clear)
        assert known is not None
        now = _get_database_time(using)
        key = PlatformKey(
            id=key_id, person_id=person.id, label=label[:200], secret_hash=hash_key_secret(known.secret),
            created_at=now, expires_at=now + expires_in,
        )  # fmt: skip
        key.save(using=using, force_insert=True)
        after = {"email": person.email, "expires_at": key.expires_at.isoformat()}
        _note_by_shell(using, "key.create", f"key:{key.id}", after, "")
        return NewPlatformKey(key, clear)


def revoke_platform_key(key_id: UUID, *, reason: str, using: str) -> datetime:
    """Revoke a key; the same again keeps the first time. Outermost verb. Raises NotFound."""
    with transaction.atomic(using=using):
        key = PlatformKey.objects.using(using).select_for_update().filter(id=key_id).first()
        if key is None:
            raise NotFound
        if key.revoked_at is not None:
            return key.revoked_at
        now = _get_database_time(using)
        PlatformKey.objects.using(using).filter(id=key_id).update(revoked_at=now)
        _note_by_shell(using, "key.revoke", f"key:{key_id}", {"revoked": True}, reason)
        return now


def touch_platform_key(key_id: UUID, now: datetime, last: datetime | None) -> None:
    """Note that a key was used, once a minute at the most. A database that takes no more writes still lets
    the caller read."""
    if last is not None and now - last <= TOUCHED_EVERY:
        return
    with suppress(DatabaseError), transaction.atomic():
        long_ago = Q(last_used_at=None) | Q(last_used_at__lt=now - TOUCHED_EVERY)
        PlatformKey.objects.filter(long_ago, id=key_id).update(last_used_at=now)


def note_platform(
    by: PlatformActor | None,
    verb: str,
    object: str,  # noqa: A002 - the audit log's own word for what was changed
    *,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    reason: str = "",
) -> None:
    """Write one line of the platform's audit log. Joins the caller's transaction, so the change and its line
    are one. `by` None is whoever has the shell."""
    PlatformEntry.objects.create(
        person_id=None if by is None else by.person, key=None if by is None else by.key, verb=verb,
        object=object[:200], before=dict(before), after=dict(after), reason=reason[:1000],
    )  # fmt: skip


def _note_by_shell(using: str, verb: str, about: str, after: Mapping[str, Any], reason: str) -> None:
    PlatformEntry.objects.using(using).create(
        verb=verb, object=about, before={}, after=dict(after), reason=reason[:1000]
    )


def _get_database_time(using: str) -> datetime:
    """The database's time, by the connection that writes."""
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now
