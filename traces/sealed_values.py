"""Sealing and opening the sensitive values of one run, under a key of its own (R-SEC-4, R-TRACE-5).

The key is stored wrapped under the application's secret and erased with the run's salt. After that, no
sealed value can be opened, while the digests remain and the chain still verifies. Encryption is
deterministic (AES-SIV), so that the same value in the same place has the same reference; without the key,
values cannot be guessed against it.
"""

import secrets
from base64 import b64decode, b64encode
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from uuid import UUID

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from tenancy.core.errors import SecretUnusable
from tenancy.secret_store import seal_secret, unseal_secret
from traces.core.canonical import canonical_model, payload_digest
from traces.core.errors import Unopenable
from traces.core.sealed_references import (
    Place,
    Sealed,
    format_sealed_reference,
    holds_reference,
    iterate_secret_texts,
    pad_plaintext,
    read_sealed,
)

SALT_BYTES = 32
KEY_BYTES = 64
_PLACE = "sealed values"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKeys:
    """The salt of a run's digests and the wrapped key of its sealed values (None: the run has none)."""

    salt: bytes
    sealing: bytes | None


@dataclass(slots=True, kw_only=True)
class Vault:
    """The sealed values of one run.

    - `wrapped` is the key as stored.
    - `bodies` are the payloads sealed by this object, by digest; a caller that stores a reference must
      store these payloads too.
    - `known` maps the values of the run, sealed here or before, to a reference each.
    - `open_calls` are the calls that may have been made without a recorded result, by tool and digest of
      their arguments; values that became known since do not change these arguments.
    - `open_forms` are the sealed arguments of those calls, by tool and digest of the opened arguments;
      never stored.
    """

    tenant: UUID
    salt: bytes
    wrapped: bytes
    bodies: dict[str, bytes] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict)
    open_calls: frozenset[str] = frozenset()
    open_forms: dict[str, bytes] = field(default_factory=dict, repr=False)

    @property
    def keys(self) -> RunKeys:
        """The salt and wrapped key as stored in the run's row."""
        return RunKeys(salt=self.salt, sealing=self.wrapped)

    def seal(self, kind: str, secret: str, place: Place) -> str:
        """Seal a value and return its reference."""
        body = sealed_payload(_unwrap_cipher(self.tenant, self.wrapped), kind, secret, place)
        digest = payload_digest(self.salt, body)
        self.bodies[digest] = body
        reference = format_sealed_reference(kind, digest)
        if not holds_reference(secret):
            for text in iterate_secret_texts(kind, secret):
                self.known.setdefault(text, reference)
        return reference

    def open_value(self, body: bytes) -> str:
        """Return the value that a payload holds.

        Raises: Unopenable.
        """
        found = read_sealed(body)
        if found is None:
            raise Unopenable(detail="it is no sealed value")
        _, bound = pad_plaintext("", found.kind, found.place)
        try:
            plain = _unwrap_cipher(self.tenant, self.wrapped).decrypt(b64decode(found.box), [bound])
        except (InvalidTag, ValueError, SecretUnusable):
            raise Unopenable(detail="its key is another") from None
        return str(orjson.loads(plain))


def fresh_vault(tenant_id: UUID) -> Vault:
    """Create the vault of a new run.

    The salt is stored as it is, the key wrapped under the application's secret.
    """
    key = b64encode(secrets.token_bytes(KEY_BYTES)).decode()
    wrapped = seal_secret(tenant_id, _PLACE, key)
    return Vault(tenant=tenant_id, salt=secrets.token_bytes(SALT_BYTES), wrapped=wrapped)


def sealed_payload(cipher: AESSIV, kind: str, secret: str, place: Place) -> bytes:
    """Build the payload of a sealed value, byte for byte as docs/trace-format.md specifies."""
    plain, bound = pad_plaintext(secret, kind, place)
    box = b64encode(cipher.encrypt(plain, [bound])).decode()
    return canonical_model(Sealed(kind=kind, place=place, box=box))


def learn_sealed(vault: Vault, kept: Iterable[tuple[bytes, bytes]]) -> None:
    """Add the values that a run sealed before to the vault, from payloads (digest, body).

    If a value was sealed several times, the reference of the task (`goal`) wins, since it is allowed in
    more places. Values sealed under another key stay unknown.
    """
    found: dict[str, str] = {}
    for digest, body in kept:
        sealed = read_sealed(bytes(body))
        if sealed is None:
            continue
        with suppress(Unopenable):
            secret = vault.open_value(bytes(body))
            if not holds_reference(secret):
                of_task = sealed.place.source == "goal"
                for text in iterate_secret_texts(sealed.kind, secret):
                    if of_task or text not in found:
                        found[text] = format_sealed_reference(sealed.kind, bytes(digest).hex())
    vault.known.update(found)


@lru_cache(maxsize=256)
def _unwrap_cipher(tenant_id: UUID, wrapped: bytes) -> AESSIV:
    return AESSIV(b64decode(unseal_secret(tenant_id, _PLACE, wrapped, name="sealed values")))
