"""When a delivery is tried again, and what an endpoint's answer means (R-API-6)."""

from datetime import timedelta
from typing import Final, Literal
from uuid import UUID

from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.tools.egress_policy import Leave, Target

# The first try is at once; each wait is followed by another. Three days in all, as Standard Webhooks has it.
WAITS: Final = (
    timedelta(seconds=5), timedelta(minutes=5), timedelta(minutes=30), timedelta(hours=2), timedelta(hours=5),
    timedelta(hours=10), timedelta(hours=14), timedelta(hours=20), timedelta(hours=24),
)  # fmt: skip
TRIES: Final = len(WAITS) + 1
LONGEST_WISH: Final = timedelta(hours=24)
# An endpoint whose last try failed, and that took nothing for so long, is turned off.
PATIENCE: Final = timedelta(days=3)
# A rotated secret signs beside the new one for so long.
OVERLAP: Final = timedelta(hours=24)
# For how many days what was sent is kept where nobody has said otherwise, and what may be said.
KEPT_DAYS: Final = 90
FEWEST_DAYS, MOST_DAYS = 1, 3_650
GONE: Final = 410
Verdict = Literal["delivered", "failed", "gone"]


def verdict_of(status: int | None) -> Verdict:
    """What an answer means: any 2xx is "delivered", 410 says never again, all else (None: no answer) failed.
    A redirect is not followed: what it leads to was never looked at."""
    if status is None:
        return "failed"
    if status == GONE:
        return "gone"
    return "delivered" if 200 <= status < 300 else "failed"


def wait_after(tries: int, delivery: UUID, wish: timedelta | None = None) -> timedelta | None:
    """How long to wait after so many tries, or None: that was the last.

    A tenth of it is spread by the delivery's id, so that what failed together does not come back together.
    `wish` is what the endpoint asked for: at least so long, a day at most.
    """
    if tries >= TRIES:
        return None
    wait = WAITS[tries - 1]
    wait += wait * (delivery.int % 1_000) / 10_000
    return max(wait, min(wish, LONGEST_WISH)) if wish is not None else wait


def admit_endpoint(target: Target, leave: Leave) -> None:
    """Without TLS only a place that an administrator has named. Raises EgressRefused."""
    if target.scheme == "http" and target.place not in leave.private:
        raise EgressRefused(detail="an endpoint is reached by https; by http only at a private place")
