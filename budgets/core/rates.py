"""Submission limits of a tenant and of each of its principals, by tier by default (R-BUDGET-11)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from types import MappingProxyType
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from budgets.core.errors import RateReached

MINUTE: Final = timedelta(minutes=1)
# The time until a queue moves is unknown; a client that retries this soon does no harm.
BUSY_SECONDS: Final = 5
WHOSE: Final = MappingProxyType({"": "the tenant", "key_": "one key or person"})
WHAT: Final = MappingProxyType(
    {
        "submissions_per_minute": "tasks a minute",
        "concurrent_runs": "runs queued or at work",
        "queue_depth": "runs waiting for a worker",
    }
)


class Rates(BaseModel):
    """Limits of admission; None is no limit.

    `concurrent_runs` counts runs that are queued or at work (not those that wait for people), `queue_depth`
    only the queued ones. The limits `key_…` apply to each principal.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    submissions_per_minute: int | None = Field(default=None, ge=1, le=1_000_000)
    concurrent_runs: int | None = Field(default=None, ge=1, le=1_000_000)
    queue_depth: int | None = Field(default=None, ge=1, le=1_000_000)
    key_submissions_per_minute: int | None = Field(default=None, ge=1, le=1_000_000)
    key_concurrent_runs: int | None = Field(default=None, ge=1, le=1_000_000)
    key_queue_depth: int | None = Field(default=None, ge=1, le=1_000_000)

    @property
    def tag(self) -> str:
        """An entity tag without its quotes; it changes whenever a limit does."""
        return "-".join("none" if limit is None else str(limit) for _, limit in self)


NAMES: Final = tuple(Rates.model_fields)


def format_limit_name(name: str) -> str:
    """Format a limit's name for people."""
    prefix = "key_" if name.startswith("key_") else ""
    return f"{WHAT[name.removeprefix('key_')]} of {WHOSE[prefix]}"


def _build_tier_rates(per_minute: int, concurrent: int, queue: int) -> Rates:
    return Rates(
        submissions_per_minute=per_minute,
        concurrent_runs=concurrent,
        queue_depth=queue,
        key_submissions_per_minute=per_minute // 2,
        key_concurrent_runs=concurrent // 2,
        key_queue_depth=queue // 2,
    )


TIERS: Final[Mapping[str, Rates]] = MappingProxyType(
    {
        "trial": _build_tier_rates(60, 100, 60),
        "standard": _build_tier_rates(1_200, 3_000, 2_500),
        "enterprise": _build_tier_rates(12_000, 30_000, 25_000),
    }
)
DEFAULT_TIER: Final = "standard"


def of_tier(tier: str) -> Rates:
    """Return the limits of a tier; an unknown tier has those of the default tier, never none."""
    return TIERS.get(tier, TIERS[DEFAULT_TIER])


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The current count against one limit, capped at the limit.

    For a per-minute limit, `since` is the time of the oldest counted item.
    """

    number: int
    since: datetime | None = None


def check_rate_limits(rates: Rates, counts: Mapping[str, Count], at: datetime) -> None:
    """Check that one more submission is within every limit.

    Raises: RateReached, with the limit's name, its value and the seconds to wait; of several limits the one
      that opens last.
    """
    reached: list[tuple[int, str, int]] = []
    for name, limit in rates:
        found = counts.get(name)
        if limit is None or found is None or found.number < limit:
            continue
        waits = BUSY_SECONDS if found.since is None else ceil((found.since + MINUTE - at).total_seconds())
        reached.append((max(1, waits), name, limit))
    if reached:
        seconds, name, limit = max(reached)
        raise RateReached(limit=limit, of=format_limit_name(name), which=name, retry_after=seconds)
