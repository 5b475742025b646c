"""Worst-case and actual cost of a model call, from a pinned price. Amounts are US$ and tokens.

Spec: R-BUDGET-2, R-BUDGET-15.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from budgets.core.amounts import NOTHING, ZERO, Vector, rounded_up
from budgets.core.dimension import Dimension
from budgets.core.errors import PriceUnknown

ONE: Final = Decimal(1)
SANE_TOKENS: Final = (
    10_000_000  # no model reads or writes so many in one call: a larger figure is not a measurement
)
USAGE_FIELDS: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


class Rate(BaseModel):
    """US$ per token. Unknown cache rates are the input rate."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    input: Decimal = Field(ge=0)
    output: Decimal = Field(ge=0)
    cache_read: Decimal | None = Field(default=None, ge=0)
    cache_write: Decimal | None = Field(default=None, ge=0)

    @property
    def dearest_input(self) -> Decimal:
        """The highest possible cost of one input token, cached or not."""
        return max(self.input, self.cache_read or ZERO, self.cache_write or ZERO)


class LongRate(Rate):
    """A rate for all tokens of a call whose input exceeds `above` tokens."""

    above: int = Field(ge=0)


class ModelPrice(Rate):
    """One version of a model's price: per token, with rates for long inputs, plus a fee per request.

    `source` names the origin of the price: a `tenant`, or the `operator` of the deployment; `declared` is
    the worst case that a policy charges where the true price is unknown.
    """

    provider: str
    model: str
    long: tuple[LongRate, ...] = ()
    per_request: Decimal = Field(default=ZERO, ge=0)
    source: Literal["genai-prices", "tenant", "operator", "declared", "scripted"]
    version: str
    valid_from: datetime | None = None

    @classmethod
    def free(cls, provider: str, model: str, *, version: str = "scripted") -> Self:
        """Build the zero price of the scripted provider."""
        return cls(
            provider=provider, model=model, input=ZERO, output=ZERO, source="scripted", version=version
        )

    def evolve(self, **changes: Any) -> Self:
        """Return a copy with `changes`, whose types mypy checks at the call.

        Raises: TypeError for a name that is no field of a price.
        """
        if unknown := sorted(changes.keys() - ModelPrice.model_fields.keys()):
            raise TypeError(f"a price has no field {', '.join(unknown)}")
        return self.model_copy(update=changes)

    def rate(self, tokens_in: Decimal) -> Rate:
        """Return the rate of a call with that many input tokens.

        The highest threshold that the call exceeds applies to all of its tokens.
        """
        passed = [long for long in self.long if tokens_in > long.above]
        return max(passed, key=lambda long: long.above, default=self)


def worst_cost(price: ModelPrice | None, tokens_in: Decimal, tokens_out: Decimal) -> Decimal:
    """Compute the highest cost of a call with at most that many tokens, in US$.

    A shorter input may have a higher rate, so every rate that can be reached counts.

    Raises: PriceUnknown if there is no price.
    """
    known = _require_price(price)
    rates: list[Rate] = [known, *(long for long in known.long if tokens_in > long.above)]
    dearest = max(rate.dearest_input * tokens_in + rate.output * tokens_out for rate in rates)
    return rounded_up(dearest + known.per_request)


def compute_affordable_output(price: ModelPrice | None, tokens_in: Decimal, left: Decimal) -> Decimal | None:
    """Compute the most output tokens for which the worst case of a call costs at most `left` US$.

    0 if not even one output token is affordable; None if output is free and the input is affordable.

    Raises: PriceUnknown.
    """
    known = _require_price(price)
    if worst_cost(known, tokens_in, ZERO) > left:
        return ZERO
    rates: list[Rate] = [known, *(long for long in known.long if tokens_in > long.above)]
    rest = left - known.per_request
    bounds = [(rest - rate.dearest_input * tokens_in) // rate.output for rate in rates if rate.output]
    most = min(bounds, default=None)
    # A cost is rounded up when booked, so an output that just fits may no longer fit after rounding.
    return most - ONE if most and worst_cost(known, tokens_in, most) > left else most


def actual_cost(price: ModelPrice | None, usage: Mapping[str, Decimal]) -> Decimal:
    """Compute the cost of a call with this (sane) usage, in US$; input tokens include cached ones.

    Raises: PriceUnknown if there is no price.
    """
    known = _require_price(price)
    tokens_in = usage.get("input_tokens", ZERO)
    rate = known.rate(tokens_in)
    read = min(usage.get("cache_read_tokens", ZERO), tokens_in)
    written = min(usage.get("cache_write_tokens", ZERO), tokens_in - read)
    cost = (
        rate.input * (tokens_in - read - written)
        + _choose_rate(rate.cache_read, rate.input) * read
        + _choose_rate(rate.cache_write, rate.input) * written
        + rate.output * usage.get("output_tokens", ZERO)
        + known.per_request
    )
    return rounded_up(cost)


def worst_case(
    price: ModelPrice | None,
    *,
    request_bytes: int,
    messages: int,
    tools: int,
    max_output: int,
    overhead_per_message: int = 16,
    overhead_per_tool: int = 64,
) -> Vector:
    """Compute the reservation of a model call (R-BUDGET-2).

    Every byte of the request counts as a token, plus overheads, plus the output limit.

    Raises: PriceUnknown.
    """
    tokens_in = Decimal(request_bytes + messages * overhead_per_message + tools * overhead_per_tool)
    tokens_out = Decimal(max_output)
    return _build_call_vector(tokens_in, tokens_out, worst_cost(price, tokens_in, tokens_out))


def compute_actual_usage(
    price: ModelPrice | None, usage: Mapping[str, object], reserved: Mapping[str, Decimal] = NOTHING
) -> Vector:
    """Compute the actual usage of a call from the usage reported by the provider.

    If the reported usage is unusable, the reserved amounts are used instead. The result is never negative.

    Raises: PriceUnknown.
    """
    sane, _ = sane_usage(usage, reserved)
    return _build_call_vector(
        sane.get("input_tokens", ZERO), sane.get("output_tokens", ZERO), actual_cost(price, sane)
    )


def sane_usage(
    reported: Mapping[str, object], estimate: Mapping[str, Decimal]
) -> tuple[dict[str, Decimal], Literal["provider", "estimated"]]:
    """Return the usage to settle with, and its origin: the provider or the estimate (M11).

    If the input or output figure is absent, not a whole number, negative or larger than any model allows,
    the reported usage is discarded. The estimate (the reservation) then replaces input and output together,
    without any cached tokens.
    """
    tokens_in, tokens_out = (
        parse_token_count(reported.get("input_tokens")),
        parse_token_count(reported.get("output_tokens")),
    )
    if tokens_in is None or tokens_out is None:
        return {name: estimate.get(name, ZERO) for name in USAGE_FIELDS[:2]}, "estimated"
    read = min(parse_token_count(reported.get("cache_read_tokens")) or ZERO, tokens_in)
    written = min(parse_token_count(reported.get("cache_write_tokens")) or ZERO, tokens_in - read)
    return dict(zip(USAGE_FIELDS, (tokens_in, tokens_out, read, written), strict=True)), "provider"


def parse_token_count(figure: object) -> Decimal | None:
    """Parse a count of tokens; None for anything else, including text and booleans."""
    if isinstance(figure, bool) or not isinstance(figure, int | float | Decimal):
        return None
    if isinstance(figure, Decimal) and not figure.is_finite():
        return None
    if not 0 <= figure <= SANE_TOKENS or figure != int(figure):  # a NaN fails the first comparison
        return None
    return Decimal(int(figure))


def _build_call_vector(tokens_in: Decimal, tokens_out: Decimal, cost: Decimal) -> Vector:
    return Vector.of(
        {
            Dimension.MODEL_TURNS: ONE,
            Dimension.INPUT_TOKENS: tokens_in,
            Dimension.OUTPUT_TOKENS: tokens_out,
            Dimension.TOTAL_TOKENS: tokens_in + tokens_out,
            Dimension.COST_USD: cost,
        }
    )


def _require_price(price: ModelPrice | None) -> ModelPrice:
    if price is None:
        raise PriceUnknown(provider="the profile's provider", model="the profile's model")
    return price


def _choose_rate(rate: Decimal | None, otherwise: Decimal) -> Decimal:
    return otherwise if rate is None else rate
