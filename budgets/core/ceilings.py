"""Spending ceilings of a tenant in US$, by tier unless the tenant has its own (R-BUDGET-9)."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from hashlib import sha256
from types import MappingProxyType
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from traces.core.canonical import format_decimal


class Ceilings(BaseModel):
    """Ceilings in US$; None is no ceiling.

    `tranche_usd` is the part of the ceilings that a run holds at once (None: the default).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    per_run_usd: Decimal | None = Field(default=None, ge=0)
    daily_usd: Decimal | None = Field(default=None, ge=0)
    monthly_usd: Decimal | None = Field(default=None, ge=0)
    tranche_usd: Decimal | None = Field(default=None, ge=0)

    @property
    def digest(self) -> str:
        """The tag at a fixed length, for storage with a pending change."""
        return sha256(self.tag.encode()).hexdigest()[:32]

    @property
    def tag(self) -> str:
        """An entity tag without its quotes; it changes whenever a ceiling does."""
        amounts = (getattr(self, name) for name in Ceilings.model_fields)
        return "-".join("none" if amount is None else format_decimal(amount) for amount in amounts)


def _build_tier_ceilings(per_run: str, daily: str, monthly: str) -> Ceilings:
    return Ceilings(per_run_usd=Decimal(per_run), daily_usd=Decimal(daily), monthly_usd=Decimal(monthly))


TIERS: Final[Mapping[str, Ceilings]] = MappingProxyType(
    {
        "trial": _build_tier_ceilings("1.00", "5.00", "50.00"),
        "standard": _build_tier_ceilings("5.00", "100.00", "1000.00"),
        "enterprise": _build_tier_ceilings("25.00", "1000.00", "20000.00"),
    }
)
DEFAULT_TIER: Final = "standard"


BOUNDS: Final = {"per_run_usd": "a run", "daily_usd": "a day", "monthly_usd": "a month"}


def describe_raised_ceilings(before: Ceilings, after: Ceilings) -> tuple[str, ...]:
    """List a sentence for each ceiling that `after` raises or removes compared to `before`."""
    return tuple(_iterate_raised_ceilings(before, after))


def _iterate_raised_ceilings(before: Ceilings, after: Ceilings) -> Iterator[str]:
    for name, what in BOUNDS.items():
        was, now = getattr(before, name), getattr(after, name)
        if was is None:
            continue
        if now is None:
            yield f"No ceiling holds for {what} any more; it was ${format_decimal(was)}."
        elif now > was:
            yield f"The ceiling for {what} is ${format_decimal(now)}, no longer ${format_decimal(was)}."


def of_tier(tier: str) -> Ceilings:
    """Return the ceilings of a tier; an unknown tier has those of the default tier, never none."""
    return TIERS.get(tier, TIERS[DEFAULT_TIER])
