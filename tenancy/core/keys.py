"""The format of an API key: `ilk_<id>_<secret><crc>`.

The id finds the row, the secret is the proof, and the CRC detects typing errors.
"""

import hmac
from base64 import b32encode
from hashlib import sha256
from typing import NamedTuple
from uuid import UUID
from zlib import crc32

PREFIX = "ilk"
SECRET_BYTES = 30


class Key(NamedTuple):
    """A parsed key."""

    id: UUID
    secret: str


def format_api_key(key_id: UUID, chance: bytes) -> str:
    """Return the clear text of a key, built from an id and 30 random bytes."""
    secret = b32encode(chance).decode().lower().rstrip("=")
    return f"{PREFIX}_{key_id.hex}_{secret}{_compute_checksum(key_id, secret)}"


def parse_api_key(text: str) -> Key | None:
    """Parse the key in `text`, or return None if its format or checksum is wrong.

    The result does not say whether the key is valid.
    """
    parts = text.split("_")
    if len(parts) != 3 or parts[0] != PREFIX or len(parts[1]) != 32 or not 20 <= len(parts[2]) <= 100:
        return None
    try:
        key_id = UUID(hex=parts[1])
    except ValueError:
        return None
    secret, check = parts[2][:-8], parts[2][-8:]
    return (
        Key(key_id, secret)
        if hmac.compare_digest(_compute_checksum(key_id, secret).encode(), check.encode())
        else None
    )


def hash_key_secret(secret: str) -> bytes:
    """Return the stored hash, SHA-256 of the secret (240 random bits need no slow hash)."""
    return sha256(secret.encode()).digest()


def is_matching_secret(secret: str, stored: bytes) -> bool:
    """Return whether the secret is the one that was hashed; compares in constant time."""
    return hmac.compare_digest(hash_key_secret(secret), stored)


def _compute_checksum(key_id: UUID, secret: str) -> str:
    return f"{crc32(f'{key_id.hex}{secret}'.encode()):08x}"
