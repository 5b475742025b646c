"""Sign-in attempts, recorded as failed before they are judged and deleted on success (R-SEC-11).

Attempts that run at the same time are therefore counted too.
"""

import hmac
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q, QuerySet

from tenancy.actions import write_audit_entry
from tenancy.core.errors import NotFound
from tenancy.core.reach import read_address
from tenancy.core.sign_in.limits import LIFTED, LONGEST, Failures, Refusal, judge_attempt, source_of
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import FailedSignIn, KnownDevice, Person
from tenancy.web.client_address import Visitor
from tenancy.web.device_cookie import digest_of
from tenancy.web.session_store import SessionStore

LONGEST_NAME: Final = 254
MOST_READ: Final = 400
MOST_DEVICES: Final = 20
# A refusal is recorded at most once per REFUSED_AGAIN for an account at an address, and at most MOST_REFUSED
# times an hour for an account.
REFUSED_AGAIN: Final = timedelta(minutes=5)
MOST_REFUSED: Final = 60
KEPT: Final = timedelta(days=30)
KEPT_DEVICE: Final = timedelta(days=180)
MOST_KEPT: Final = 200_000
_HOLD: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


def begin_attempt(name: str, step: str, visitor: Visitor, device: str | None) -> UUID | Refusal:
    """Record an attempt to sign in as `name` as failed, or return the reason for which it is refused.

    Returns the id of the record, for `take_back_attempt`. `device` is the secret of the browser's cookie.
    Owns the transaction.
    """
    account, source = account_digest(name), source_of(visitor.address)
    person = Person.objects.filter(email=name.strip().lower()[:LONGEST_NAME]).first()
    with transaction.atomic():
        _take_advisory_lock(f"sign-in:account:{account.hex()}")
        _take_advisory_lock(f"sign-in:source:{source}")
        now, known = database_now(), _known_device(person, device)
        refusal = judge_attempt(_load_failures(account, source, known, person, now), now)
        if refusal is not None and (person is None or not _is_refusal_due(account, source, now)):
            return refusal
        row = FailedSignIn.objects.create(
            at=now, step="refused" if refusal else step, account=account, person=person, source=source,
            address=None if visitor.address is None else str(visitor.address), browser=visitor.browser,
            device=None if known is None else known.id,
        )  # fmt: skip
        return refusal or row.id


def take_back_attempt(attempt: UUID) -> None:
    """Delete a successful attempt, so that no limit counts it."""
    FailedSignIn.objects.filter(id=attempt).delete()


def lift_limits(tenant_id: UUID, person_id: UUID, *, by: UUID, reason: str) -> Person:
    """Let a person of this tenant try again at once, from anywhere: no failure up to now counts any more.

    Audited. Outermost verb: owns the transaction.

    Raises: NotFound.
    """
    with tenant_transaction(tenant_id):
        person = Person.objects.filter(memberships__tenant_id=tenant_id, id=person_id).distinct().first()
        if person is None:
            raise NotFound
        lifted = FailedSignIn.objects.filter(person=person, lifted_at=None).update(lifted_at=database_now())
        if lifted:
            write_audit_entry(
                tenant_id, by, verb="sign_in.lift", object=f"person:{person.id}", before={},
                after={"failed": lifted}, reason=reason,
            )  # fmt: skip
        return person


def remember_device(person: Person, device: str, visitor: Visitor) -> None:
    """Store this browser as one in which the person has signed in; delete the least recently used ones."""
    now, address = database_now(), None if visitor.address is None else str(visitor.address)
    seen = {"last_used_at": now, "address": address, "browser": visitor.browser}
    row, made = KnownDevice.objects.get_or_create(
        person=person, digest=digest_of(device), defaults={"created_at": now, **seen}
    )
    if not made:
        KnownDevice.objects.filter(id=row.id).update(**seen)
    kept = KnownDevice.objects.filter(person=person).order_by("-last_used_at")[:MOST_DEVICES]
    KnownDevice.objects.filter(person=person).exclude(id__in=list(kept.values_list("id", flat=True))).delete()


def forget_devices(person: Person) -> None:
    """Delete the known browsers of a person; each is unknown until the next sign-in there."""
    KnownDevice.objects.filter(person=person).delete()


def forget_old_sign_ins() -> None:
    """Delete ended sessions, old failed attempts, and browsers that have not been used for a long time.

    Failed attempts with an unknown name are deleted after a day. The oldest attempts are deleted where there
    are more than MOST_KEPT.
    """
    SessionStore.clear_expired()
    now = database_now()
    old = Q(at__lt=now - KEPT) | Q(person=None, at__lt=now - LONGEST)
    FailedSignIn.objects.filter(old).delete()
    beyond = FailedSignIn.objects.order_by("-at")[MOST_KEPT : MOST_KEPT + 1].values_list("at", flat=True)
    for at in beyond:
        FailedSignIn.objects.filter(at__lte=at).delete()
    KnownDevice.objects.filter(last_used_at__lt=now - KEPT_DEVICE).delete()


def account_digest(name: str) -> bytes:
    """Return the digest under which attempts with this name are counted.

    The name cannot be derived from the digest without the secret key.
    """
    typed = name.strip().lower()[:LONGEST_NAME].encode()
    key = b"interlock.sign-in:" + str(settings.SECRET_KEY).encode()
    return hmac.new(key, typed, sha256).digest()


def failures_of(
    account: bytes, source: str, known: KnownDevice | None, *, familiar: bool, now: datetime
) -> Failures:
    """Return the failures that are counted with an attempt on this account from this source."""
    counted = FailedSignIn.objects.filter(at__gt=now - LONGEST, lifted_at=None).exclude(step="refused")
    strangers = counted.filter(device=None)
    lifted = FailedSignIn.objects.filter(account=account, source=source, lifted_at__gt=now - LIFTED)
    return Failures(
        device=None
        if known is None
        else _list_failure_times(counted.filter(account=account, device=known.id)),
        pair=_list_failure_times(strangers.filter(account=account, source=source)),
        address=_list_failure_times(strangers.filter(source=source)),
        account=_list_failure_times(strangers.filter(account=account)),
        familiar=familiar,
        lifted=lifted.exists(),
    )


def is_familiar(person: Person | None, source: str) -> bool:
    """Return whether the person has signed in from this address with a browser that is still known."""
    found = KnownDevice.objects.filter(person=person).values_list("address", flat=True) if person else ()
    return bool(source) and any(source_of(read_address(str(one))) == source for one in found if one)


def _load_failures(
    account: bytes, source: str, known: KnownDevice | None, person: Person | None, now: datetime
) -> Failures:
    return failures_of(account, source, known, familiar=is_familiar(person, source), now=now)


def _list_failure_times(rows: "QuerySet[FailedSignIn]") -> Sequence[datetime]:
    return list(rows.order_by("-at").values_list("at", flat=True)[:MOST_READ])


def _known_device(person: Person | None, device: str | None) -> KnownDevice | None:
    if person is None or device is None:
        return None
    return KnownDevice.objects.filter(person=person, digest=digest_of(device)).first()


def _is_refusal_due(account: bytes, source: str, now: datetime) -> bool:
    refused = FailedSignIn.objects.filter(account=account, step="refused")
    if refused.filter(source=source, at__gt=now - REFUSED_AGAIN).exists():
        return False
    return refused.filter(at__gt=now - timedelta(hours=1)).count() < MOST_REFUSED


def _take_advisory_lock(name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, (name,))
