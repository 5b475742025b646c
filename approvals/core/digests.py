"""The digest of a decision: every column of its row.

`previous` is the digest of the word said before, and of the packet for the first: the trace binds the last
one, so no earlier vote can be taken away unseen.
"""

from collections.abc import Mapping
from typing import Any

from traces.core.canonical import compute_digest, encode_canonical

COLUMNS = (
    "id", "tenant_id", "request_id", "principal", "owner", "role", "kind", "reason", "arguments", "answer",
    "packet_digest", "previous", "at", "quorum",
)  # fmt: skip


def decision_digest(row: Mapping[str, Any]) -> str:
    """SHA-256 over the canonical form of the row; bytes as hex. A quorum that is None is left out, as it was
    before it was kept. Raises NotCanonical for text that is none."""
    told = {
        name: _encode_bytes_as_hex(row[name]) for name in COLUMNS if name != "quorum" or row[name] is not None
    }
    return compute_digest("decision", encode_canonical(told))


def _encode_bytes_as_hex(value: Any) -> Any:
    return bytes(value).hex() if isinstance(value, bytes | memoryview) else value
