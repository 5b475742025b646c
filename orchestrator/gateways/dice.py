"""Chance, in one place, so that nothing else in the orchestrator reaches for it."""

import os
from uuid import UUID

from tenancy.ids import fresh_id


def fresh_bytes(size: int) -> bytes:
    """`size` bytes of chance, fit for secrets."""
    return os.urandom(size)


def fresh_token(size: int = 8) -> str:
    """`size` bytes of chance as hex."""
    return fresh_bytes(size).hex()


def new_id() -> UUID:
    """A new identifier, in order within this process."""
    return fresh_id()
