"""What a model call can cost and did cost, from a pinned price (R-BUDGET-2, R-BUDGET-15). Amounts are US$ and
tokens."""

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
        """The most that one input token can cost, cached or not."""
        return max(self.input, self.cache_read or ZERO, self.cache_write or ZERO)


class LongRate(Rate):
    """A rate for all tokens of a call whose input exceeds `above` tokens."""

    above: int = Field(ge=0)


class ModelPrice(Rate):
    """One version of a model's price: per token, with rates for long inputs, plus a sum per request.

    `source` says who stated it: a `tenant`, or the `operator` of the house; `declared` is the worst case that
    a policy charges where the true price is unknown.
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
        """The price of a model that asks no money: the scripted provider."""
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
        """The rate of a call with that many input tokens: the highest threshold it passes counts for all
        tokens."""
        passed = [long for long in self.long if tokens_in > long.above]
        return max(passed, key=lambda long: long.above, default=self)


def worst_cost(price: ModelPrice | None, tokens_in: Decimal, tokens_out: Decimal) -> Decimal:
    """The most that a call with at most so many tokens can cost, in US$. Raises PriceUnknown where there is
    no price.

    A shorter input may stand under a dearer rate, so every rate that can be reached counts.
    """
    known = _require_price(price)
    rates: list[Rate] = [known, *(long for long in known.long if tokens_in > long.above)]
    dearest = max(rate.dearest_input * tokens_in + rate.output * tokens_out for rate in rates)
    return rounded_up(dearest + known.per_request)


def compute_affordable_output(price: ModelPrice | None, tokens_in: Decimal, left: Decimal) -> Decimal | None:
    """The most output tokens that a call with so many input tokens may have when `left` US$ are left: its
    worst case then is no more than that. 0 where not one is; None where output costs nothing and the rest
    does. Raises PriceUnknown."""
    known = _require_price(price)
    if worst_cost(known, tokens_in, ZERO) > left:
        return ZERO
    rates: list[Rate] = [known, *(long for long in known.long if tokens_in > long.above)]
    rest = left - known.per_request
    bounds = [(rest - rate.dearest_input * tokens_in) // rate.output for rate in rates if rate.output]
    most = min(bounds, default=None)
    # A cost is booked rounded up: what just fits may not, once it is.
    return most - ONE if most and worst_cost(known, tokens_in, most) > left else most


def actual_cost(price: ModelPrice | None, usage: Mapping[str, Decimal]) -> Decimal:
    """What a call with this (sane) usage costs, in US$; cached tokens are part of the input tokens.

    Raises PriceUnknown where there is no price.
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
    """What a model call must reserve: every byte of the request a token, plus overheads, plus the output
    limit.

    R-BUDGET-2. Raises PriceUnknown.
    """
    tokens_in = Decimal(request_bytes + messages * overhead_per_message + tools * overhead_per_tool)
    tokens_out = Decimal(max_output)
    return _build_call_vector(tokens_in, tokens_out, worst_cost(price, tokens_in, tokens_out))


def compute_actual_usage(
    price: ModelPrice | None, usage: Mapping[str, object], reserved: Mapping[str, Decimal] = NOTHING
) -> Vector:
    """What a reply took, from the usage as the provider reported it; where it is unusable, what was reserved.

    Never negative. Raises PriceUnknown.
    """
    sane, _ = sane_usage(usage, reserved)
    return _build_call_vector(
        sane.get("input_tokens", ZERO), sane.get("output_tokens", ZERO), actual_cost(price, sane)
    )


def sane_usage(
    reported: Mapping[str, object], estimate: Mapping[str, Decimal]
) -> tuple[dict[str, Decimal], Literal["provider", "estimated"]]:
    """The usage to settle with, and who counted it (M11).

    A figure that is absent, no whole number, negative or beyond any model makes the reported usage worthless:
    the estimate (what was reserved) takes its place, for input and output together, without any cached
    tokens.
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
    """A count of tokens, or None for anything that is not one. Text is not a number here, nor is True."""
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
