"""Retry schedule of deliveries, and the meaning of an endpoint's answer (R-API-6)."""

from datetime import timedelta
from typing import Final, Literal
from uuid import UUID

from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.tools.egress_policy import EgressPolicy, Target

# The first try is immediate; another try follows each wait. Three days in all, as in Standard Webhooks.
WAITS: Final = (
    timedelta(seconds=5), timedelta(minutes=5), timedelta(minutes=30), timedelta(hours=2), timedelta(hours=5),
    timedelta(hours=10), timedelta(hours=14), timedelta(hours=20), timedelta(hours=24),
)  # fmt: skip
TRIES: Final = len(WAITS) + 1
LONGEST_WISH: Final = timedelta(hours=24)
# An endpoint is disabled if its last try failed and it accepted no delivery for this time.
PATIENCE: Final = timedelta(days=3)
# A rotated secret signs together with the new one for this time.
OVERLAP: Final = timedelta(hours=24)
# Default retention of sent deliveries in days, and the range that can be configured.
KEPT_DAYS: Final = 90
FEWEST_DAYS, MOST_DAYS = 1, 3_650
GONE: Final = 410
Verdict = Literal["delivered", "failed", "gone"]


def verdict_of(status: int | None) -> Verdict:
    """Return the meaning of a status: any 2xx is "delivered", 410 is "gone", anything else is "failed".

    None means that there was no answer. "gone" means that the endpoint must never be called again. A redirect
    is not followed, because its target was never checked.
    """
    if status is None:
        return "failed"
    if status == GONE:
        return "gone"
    return "delivered" if 200 <= status < 300 else "failed"


def wait_after(tries: int, delivery: UUID, wish: timedelta | None = None) -> timedelta | None:
    """Return the wait after `tries` tries, or None if that was the last.

    The delivery's id spreads the wait by up to a tenth, so that deliveries that failed together do not come
    back together. `wish` is the delay that the endpoint asked for: the wait is at least that long, at most a
    day.
    """
    if tries >= TRIES:
        return None
    wait = WAITS[tries - 1]
    wait += wait * (delivery.int % 1_000) / 10_000
    return max(wait, min(wish, LONGEST_WISH)) if wish is not None else wait


def admit_endpoint(target: Target, leave: EgressPolicy) -> None:
    """Check that an endpoint without TLS is a place that an administrator has named.

    Raises: EgressRefused.
    """
    if target.scheme == "http" and target.place not in leave.private:
        raise EgressRefused(detail="an endpoint is reached by https; by http only at a private place")
