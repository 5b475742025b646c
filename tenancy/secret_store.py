"""Secrets of a tenant: sealed at rest, bound to one origin, referred to by name (R-SEC-4, P9).

Only two functions return a secret: `reveal_secret`, which is called at the time of sending, with the target
origin, and `unseal_secret`, for secrets of this system that only sign and never leave it.
"""

import base64
import hmac
import re
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

import orjson
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from tenancy.actions import write_audit_entry
from tenancy.core.errors import InvalidInput, NotFound, SecretUnusable
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Secret

NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
LONGEST = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """How to get a new secret when one has expired: an OAuth 2 token endpoint and the request to it.

    The request uses the client's own credentials or, if there is one, a refresh token.
    """

    url: str
    client_id: str
    client_secret: str
    refresh_token: str = ""
    scope: str = ""


class Credential(NamedTuple):
    """A secret that is about to be sent; `expired` if it is no longer valid."""

    value: str
    expired: bool
    renewal: Renewal | None


def keep_secret(
    tenant_id: UUID,
    name: str,
    value: str,
    *,
    origin: str,
    by: UUID | None,
    reason: str = "",
    expires_at: datetime | None = None,
    renewal: Renewal | None = None,
) -> Secret:
    """Store a secret for one origin; a secret with the same name is replaced.

    Joins or opens the tenant's transaction. `origin` is for example `https://api.example`, or
    `stdio:<command>`.

    Raises: InvalidInput.
    """
    _check_secret_input(name, value, origin)
    with tenant_transaction(tenant_id):
        now = database_now()
        before = Secret.objects.filter(name=name, revoked_at=None).first()
        if before is not None:
            Secret.objects.filter(id=before.id).update(revoked_at=now, sealed=b"", renewal=b"")
        made = Secret.objects.create(
            tenant_id=tenant_id, name=name, origin=origin, created_by=by, created_at=now,
            sealed=seal_secret(tenant_id, origin, value), expires_at=expires_at,
            renews_at=renewal.url if renewal is not None else "",
            renewal=_sealed_renewal(tenant_id, renewal) if renewal is not None else b"",
        )  # fmt: skip
        was = {"origin": before.origin} if before is not None else {}
        write_audit_entry(
            tenant_id, by, verb="secret.keep", object=f"secret:{name}", before=was, after={"origin": origin},
            reason=reason,
        )  # fmt: skip
        return made


def revoke_secret(tenant_id: UUID, name: str, *, by: UUID | None, reason: str = "") -> None:
    """Revoke a secret with effect from the next call.

    Raises: NotFound.
    """
    with tenant_transaction(tenant_id):
        held = Secret.objects.filter(name=name, revoked_at=None).first()
        if held is None:
            raise NotFound
        Secret.objects.filter(id=held.id).update(revoked_at=database_now(), sealed=b"", renewal=b"")
        write_audit_entry(
            tenant_id, by, verb="secret.revoke", object=f"secret:{name}", before={"origin": held.origin},
            after={"revoked": True}, reason=reason,
        )  # fmt: skip


def secrets_of(tenant_id: UUID) -> list[Secret]:
    """Return the names and origins of the stored secrets, by name; never a value."""
    with tenant_transaction(tenant_id):
        return list(Secret.objects.filter(revoked_at=None).defer("sealed", "renewal").order_by("name"))


def reveal_secret(tenant_id: UUID, name: str, origin: str) -> str:
    """Return the value for a call to `origin` and no other.

    Raises: SecretUnusable.
    """
    with tenant_transaction(tenant_id):
        held = Secret.objects.filter(name=name, revoked_at=None).first()
        if held is None:
            raise SecretUnusable(name=name, detail="there is none of this name")
        if held.origin != origin:
            raise SecretUnusable(name=name, detail=f"it is kept for {held.origin} alone")
        if held.expires_at is not None and held.expires_at <= database_now():
            raise SecretUnusable(name=name, detail="it has expired; keep it anew")
        return unseal_secret(tenant_id, origin, bytes(held.sealed), name=name)


def load_credential(tenant_id: UUID, name: str, origin: str, *, lasting: timedelta) -> Credential:
    """Return the value for a call to `origin` that takes up to `lasting`, and how to renew the value.

    Raises: SecretUnusable.
    """
    with tenant_transaction(tenant_id):
        held = Secret.objects.filter(name=name, revoked_at=None).first()
        if held is None or held.expires_at is None:
            return Credential(reveal_secret(tenant_id, name, origin), False, None)
        if held.origin != origin:
            raise SecretUnusable(name=name, detail=f"it is kept for {held.origin} alone")
        expired = held.expires_at <= database_now() + lasting
        value = unseal_secret(tenant_id, origin, bytes(held.sealed), name=name)
        return Credential(value, expired, _unseal_renewal(tenant_id, held))


def _sealed_renewal(tenant_id: UUID, renewal: Renewal) -> bytes:
    return seal_secret(tenant_id, f"renewal {renewal.url}", orjson.dumps(asdict(renewal)).decode())


def _unseal_renewal(tenant_id: UUID, held: Secret) -> Renewal | None:
    if not held.renews_at:
        return None
    opened = unseal_secret(tenant_id, f"renewal {held.renews_at}", bytes(held.renewal), name=held.name)
    return Renewal(**orjson.loads(opened))


def seal_secret(tenant_id: UUID, place: str, value: str) -> bytes:
    """Encrypt a secret for this tenant and place only.

    A place is an origin, or another thing that the secret belongs to.
    """
    return _get_cipher().encrypt(_bind_plaintext(tenant_id, place, value))


def unseal_secret(tenant_id: UUID, place: str, box: bytes, *, name: str) -> str:
    """Return the sealed value.

    Raises: SecretUnusable, which contains `name`.
    """
    try:
        opened = _get_cipher().decrypt(box)
    except InvalidToken:
        raise SecretUnusable(name=name, detail="it was sealed under another key; keep it anew") from None
    mark = _bind_plaintext(tenant_id, place, "")
    if not opened.startswith(mark):
        # A row that was copied manually between tenants or origins cannot be opened.
        raise SecretUnusable(name=name, detail="it was sealed for another tenant or origin")
    return opened[len(mark) :].decode()


def blinded_by_each(tenant_id: UUID, text: str) -> tuple[str, ...]:
    """Return the keyed digests (hex) of a text, specific to the tenant: under the current secret first.

    The others are under the former secrets of the application that still count. Without a secret no digest
    can be computed, and no text can be tried against one.
    """
    told = tenant_id.bytes + text.encode("utf-8", "surrogatepass")
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return tuple(hmac.new(_blinding_key(key), told, "sha256").hexdigest() for key in keys)


def _check_secret_input(name: str, value: str, origin: str) -> None:
    faults = []
    if not NAME.fullmatch(name):
        faults.append(("/name", "Lower-case letters, digits, - and _, at most 64, a letter first."))
    if not value or len(value) > LONGEST or not value.isprintable() or not value.isascii():
        faults.append(("/value", "1 to 8,192 printable ASCII characters."))
    if not origin or len(origin) > 300:
        faults.append(("/origin", "The one origin that it may be sent to."))
    if faults:
        raise InvalidInput(errors=[{"pointer": p, "code": "not-allowed", "detail": d} for p, d in faults])


def _bind_plaintext(tenant_id: UUID, origin: str, value: str) -> bytes:
    return tenant_id.bytes + origin.encode() + b"\0" + value.encode()


def _get_cipher() -> MultiFernet:
    return _build_cipher((settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))


@lru_cache(4)
def _build_cipher(keys: tuple[str, ...]) -> MultiFernet:
    """Build a cipher from all application secrets: the newest encrypts, all decrypt."""
    return MultiFernet([Fernet(base64.urlsafe_b64encode(_derive_cipher_key(key))) for key in keys])


@lru_cache(8)
def _blinding_key(key: str) -> bytes:
    return _derive_cipher_key(key, b"interlock blind digests")


def _derive_cipher_key(key: str, info: bytes = b"interlock tenant secrets") -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(key.encode())
