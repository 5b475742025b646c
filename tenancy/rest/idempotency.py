"""Idempotency-Key: the same POST twice is one act (W1, R-API-1).

Same key and body → the first answer again; another body → 422; still under way → 409, to be tried again in
a second; its process dead, or its try ended while the database was away → taken over at once; past its life
→ a new act. What an act must not do twice, though it was cut off between its commit and its answer, it looks
for itself (W6).
"""

from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.db import IntegrityError, transaction

from tenancy.core.errors import TenancyError
from tenancy.db.clock import database_now
from tenancy.db.process_lock import is_lock_held, process_lock_number
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import IdempotencyKey
from tenancy.secret_store import blinded_by_each

LONGEST_PATH = 255
LIFE = timedelta(hours=24)
PATIENCE = timedelta(seconds=60)
AGAIN_SECONDS = 1
# The claims whose acts this process is at. One that names this process and is not here was cut off: its act
# has ended, and the database was away when that was to be written down.
_UNDER_WAY: set[UUID] = set()


class KeyReused(TenancyError):
    """This Idempotency-Key was used for another request."""

    code = "idempotency-key-reused"


class KeyInUse(TenancyError):
    """A request with this Idempotency-Key is still under way."""

    code = "idempotency-key-in-use"


class StoredResponse(NamedTuple):
    """What a POST is answered with; `replayed` when it was answered before."""

    status: int
    body: Any
    replayed: bool = False


def execute_once(
    tenant_id: UUID, principal: UUID, key: str | None, path: str, body: Any, act: Callable[[], StoredResponse]
) -> StoredResponse:
    """Do `act` once per key. An act that raises leaves no mark, so it can be tried again.

    Raises KeyReused (422) and KeyInUse (409).
    """
    if key is None:
        return act()
    held = _claim_key(tenant_id, principal, key, path, _compute_request_digests(tenant_id, body))
    if isinstance(held, StoredResponse):
        return held
    try:
        try:
            answer = act()
        except BaseException:
            _delete_claim(tenant_id, held)
            raise
        _store_response(tenant_id, held, answer)
    finally:
        _UNDER_WAY.discard(held)
    return answer


def _compute_request_digests(tenant_id: UUID, body: Any) -> tuple[bytes, ...]:
    """The digest of a request as it is kept, which nobody without the application's secret can try bodies
    against, and as it may have been kept before: under a former secret, or by an earlier release."""
    plain = sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).digest()
    blind = blinded_by_each(tenant_id, f"request {plain.hex()}")
    return (*map(bytes.fromhex, blind), plain)


def _claim_key(
    tenant_id: UUID, principal: UUID, key: str, path: str, digests: tuple[bytes, ...]
) -> StoredResponse | UUID:
    """Take the key (the id of the claim), or give the answer it has."""
    path = _shorten_path(path)
    with tenant_transaction(tenant_id):
        now = database_now()
        mine = IdempotencyKey.objects.filter(principal=principal, path=path, key=key)
        mine.filter(expires_at__lte=now).delete()
        # A process that died while it acted never answers. Where it held no lock to tell by, its claim is
        # void after a minute; of its own claims this process knows better.
        old, own = mine.filter(status=None, created_at__lte=now - PATIENCE), process_lock_number()
        (old if own is None else old.exclude(process_lock=own)).delete()
        fresh = IdempotencyKey(
            tenant_id=tenant_id, principal=principal, key=key, path=path, body_digest=digests[0],
            expires_at=now + LIFE, process_lock=own,
        )  # fmt: skip
        if _is_kept(fresh):
            return fresh.id
        row = mine.first()
        if row is not None and bytes(row.body_digest) in digests and _is_abandoned(row):
            mine.filter(id=row.id, status=None).delete()
            if _is_kept(fresh):
                return fresh.id
            # Somebody else took it over in this very moment.
            row = None
    if row is None:
        # The one that held it raised and let go in this very moment: as if it were still under way.
        raise KeyInUse(retry_after=AGAIN_SECONDS)
    if bytes(row.body_digest) not in digests:
        raise KeyReused
    if row.status is None:
        raise KeyInUse(retry_after=AGAIN_SECONDS)
    return StoredResponse(row.status, None if row.answer is None else orjson.loads(row.answer), replayed=True)


def _is_kept(claim: IdempotencyKey) -> bool:
    """Insert a claim; whether nobody has the key. It is under way before anybody can read it."""
    _UNDER_WAY.add(claim.id)
    try:
        with transaction.atomic():
            claim.save(force_insert=True)
    except BaseException as error:
        _UNDER_WAY.discard(claim.id)
        if isinstance(error, IntegrityError):
            return False
        raise
    return True


def _is_abandoned(claim: IdempotencyKey) -> bool:
    """Whether the process that made a claim died before it answered, or this one is not at its act any
    more."""
    if claim.status is not None or claim.process_lock is None:
        return False
    if claim.process_lock == process_lock_number():
        return claim.id not in _UNDER_WAY
    return not is_lock_held(claim.process_lock)


def _shorten_path(path: str) -> str:
    """A path as a row names it: the digest of one that has no room there."""
    return path if len(path) <= LONGEST_PATH else sha256(path.encode()).hexdigest()


def _store_response(tenant_id: UUID, claim: UUID, answer: StoredResponse) -> None:
    with tenant_transaction(tenant_id):
        IdempotencyKey.objects.filter(id=claim).update(
            status=answer.status, answer=orjson.dumps(answer.body).decode()
        )


def _delete_claim(tenant_id: UUID, claim: UUID) -> None:
    with tenant_transaction(tenant_id):
        IdempotencyKey.objects.filter(id=claim, status=None).delete()


def forget_expired(tenant_id: UUID, most: int = 1_000) -> int:
    """Drop a tenant's answers that are past their life, `most` at a time; how many."""
    with tenant_transaction(tenant_id):
        expired = IdempotencyKey.objects.filter(expires_at__lte=database_now()).values("id")[:most]
        return IdempotencyKey.objects.filter(id__in=expired).delete()[0]
