"""Idempotency-Key: the same POST twice is one act (W1, R-API-1).

Same key and body: the first response is returned again. Another body: 422. Still being processed: 409, to be
retried in a second. If the process of the first request is dead, or its attempt ended while the database was
unavailable, the key is taken over at once. An expired key starts a new act. An act that must not be done
twice, even if it was interrupted between its commit and its response, has to check for that itself (W6).
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
# The claims whose acts this process is executing. A claim that names this process and is missing here was
# interrupted: its act has ended, and the database was unavailable when that was to be stored.
_UNDER_WAY: set[UUID] = set()


class KeyReused(TenancyError):
    """This Idempotency-Key was used for another request."""

    code = "idempotency-key-reused"
    http_status = 422


class KeyInUse(TenancyError):
    """A request with this Idempotency-Key is still under way."""

    code = "idempotency-key-in-use"


class StoredResponse(NamedTuple):
    """The response to a POST; `replayed` if it was returned before."""

    status: int
    body: Any
    replayed: bool = False


def execute_once(
    tenant_id: UUID, principal: UUID, key: str | None, path: str, body: Any, act: Callable[[], StoredResponse]
) -> StoredResponse:
    """Execute `act` once per key. An act that raises leaves no record, so it can be tried again.

    Raises: KeyReused (422) and KeyInUse (409).
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
    """Return the digests of a request: the one to store now, and those that may have been stored before.

    Without the application's secret, bodies cannot be tried against the stored digest. Earlier digests are
    those under a former secret.
    """
    plain = sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).digest()
    return tuple(map(bytes.fromhex, blinded_by_each(tenant_id, f"request {plain.hex()}")))


def _claim_key(
    tenant_id: UUID, principal: UUID, key: str, path: str, digests: tuple[bytes, ...]
) -> StoredResponse | UUID:
    """Claim the key and return the id of the claim, or return the stored response of the key."""
    path = _shorten_path(path)
    with tenant_transaction(tenant_id):
        now = database_now()
        mine = IdempotencyKey.objects.filter(principal=principal, path=path, key=key)
        mine.filter(expires_at__lte=now).delete()
        # A process that died during the act never responds. Without a process lock, its claim is void after a
        # minute; claims of this process are excluded, because their state is known.
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
            # Another request took the claim over at the same moment.
            row = None
    if row is None:
        # The previous holder raised and released the key at the same moment: treated as still in use.
        raise KeyInUse(retry_after=AGAIN_SECONDS)
    if bytes(row.body_digest) not in digests:
        raise KeyReused
    if row.status is None:
        raise KeyInUse(retry_after=AGAIN_SECONDS)
    return StoredResponse(row.status, None if row.answer is None else orjson.loads(row.answer), replayed=True)


def _is_kept(claim: IdempotencyKey) -> bool:
    """Insert a claim and return whether the key was free.

    The claim is registered as under way before any other process can read it.
    """
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
    """Return whether the process of a claim died before it responded, or this process has left its act."""
    if claim.status is not None or claim.process_lock is None:
        return False
    if claim.process_lock == process_lock_number():
        return claim.id not in _UNDER_WAY
    return not is_lock_held(claim.process_lock)


def _shorten_path(path: str) -> str:
    """Return a path as a row stores it: a digest of the path if it is too long."""
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
    """Delete up to `most` expired responses of a tenant; return how many."""
    with tenant_transaction(tenant_id):
        expired = IdempotencyKey.objects.filter(expires_at__lte=database_now()).values("id")[:most]
        return IdempotencyKey.objects.filter(id__in=expired).delete()[0]
