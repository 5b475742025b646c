"""The digest of a decision: every column of its row."""

from collections.abc import Mapping
from typing import Any

from traces.core.canonical import canonical, digest

COLUMNS = (
    "id", "tenant_id", "request_id", "principal", "owner", "role", "kind", "reason", "arguments", "answer",
    "packet_digest", "at",
)  # fmt: skip


def decision_digest(row: Mapping[str, Any]) -> str:
    """SHA-256 over the canonical form of the row; bytes as hex."""
    plain = {name: bytes(value).hex() if isinstance(value, bytes | memoryview) else value for name, value in row.items()}
    return digest("decision", canonical({name: plain[name] for name in COLUMNS}))
