"""How long to wait before another attempt: min(cap, base·2^r + jitter) (R-TOOL-10).

The jitter comes from the failed effect's id: spread over runs like chance, yet the same in a replay.
"""

from hashlib import sha256

BASE_MS = 500
CAP_MS = 30_000
JITTER_MS = 500


def delay_ms(attempt: int, seed: str, wish_ms: int | None = None) -> int:
    """The wait after failed attempt number `attempt` (from 1), honouring the other side's wish up to the
    cap."""
    jitter = int.from_bytes(sha256(seed.encode()).digest()[:4], "big") % (JITTER_MS + 1)
    own: int = min(CAP_MS, BASE_MS * 2 ** min(attempt - 1, 10) + jitter)
    return own if wish_ms is None else min(CAP_MS, max(own, wish_ms))
