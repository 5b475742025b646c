"""What a call may cost is never less than what it costs, whatever the provider says."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgets.core.errors import PriceUnknown
from budgets.core.pricing import (
    LongRate,
    ModelPrice,
    actual_cost,
    compute_actual_usage,
    compute_affordable_output,
    sane_usage,
    worst_case,
    worst_cost,
)
from tests.proves import proves

PRICE = ModelPrice(
    provider="openai",
    model="m",
    input=Decimal("0.000003"),
    output=Decimal("0.000015"),
    cache_read=Decimal("0.0000003"),
    cache_write=Decimal("0.00000375"),
    long=(LongRate(above=200_000, input=Decimal("0.000006"), output=Decimal("0.0000225")),),
    per_request=Decimal("0.01"),
    source="declared",
    version="1",
)
COUNTS = st.integers(0, 400_000)
ESTIMATE = {"input_tokens": Decimal(1_000), "output_tokens": Decimal(200)}


@proves("R-BUDGET-2", part="worst case")
@given(tokens_in=COUNTS, tokens_out=COUNTS, read=COUNTS, written=COUNTS, over=COUNTS)
def test_the_worst_case_covers_every_usage_within_it(
    tokens_in: int, tokens_out: int, read: int, written: int, over: int
) -> None:
    usage, _ = sane_usage(
        {
            "input_tokens": tokens_in,
            "output_tokens": tokens_out,
            "cache_read_tokens": read,
            "cache_write_tokens": written,
        },
        ESTIMATE,
    )
    assert actual_cost(PRICE, usage) <= worst_cost(
        PRICE, Decimal(tokens_in + over), Decimal(tokens_out + over)
    )


@proves("R-BUDGET-2", part="output that the money left allows")
@given(
    tokens_in=COUNTS.map(Decimal),
    left=st.decimals(min_value=0, max_value=50, places=6),
    output=st.decimals(min_value=0, max_value="0.01", places=9),
)
def test_as_many_output_tokens_as_money_is_left_for_and_not_one_more(
    tokens_in: Decimal, left: Decimal, output: Decimal
) -> None:
    price = PRICE.evolve(output=output)
    most = compute_affordable_output(price, tokens_in, left)
    if most is None:
        assert worst_cost(price, tokens_in, Decimal(10) ** 9) <= left
        return
    assert most == 0 or worst_cost(price, tokens_in, most) <= left
    assert worst_cost(price, tokens_in, most + 1) > left


@proves("R-BUDGET-2", part="input estimate")
def test_every_byte_of_the_request_is_reserved_as_a_token() -> None:
    vector = worst_case(PRICE, request_bytes=1_000, messages=2, tools=3, max_output=500)
    assert vector["input_tokens"] == 1_000 + 2 * 16 + 3 * 64
    assert vector["total_tokens"] == vector["input_tokens"] + 500
    assert vector["model_turns"] == 1


def test_cached_tokens_cost_their_own_rate() -> None:
    usage = {
        "input_tokens": Decimal(1_200),
        "cache_read_tokens": Decimal(1_000),
        "output_tokens": Decimal(30),
    }
    assert actual_cost(PRICE, usage) == Decimal("0.01") + Decimal("0.0006") + Decimal("0.0003") + Decimal(
        "0.00045"
    )


def test_a_long_input_is_charged_at_its_rate_from_the_first_token() -> None:
    assert actual_cost(PRICE, {"input_tokens": Decimal(200_001)}) == Decimal("0.01") + 200_001 * Decimal(
        "0.000006"
    )


@proves("R-BUDGET-15", part="unknown price")
def test_an_unknown_price_is_refused_and_never_zero() -> None:
    with pytest.raises(PriceUnknown):
        worst_cost(None, Decimal(1), Decimal(1))
    with pytest.raises(PriceUnknown):
        actual_cost(None, {})


@proves("M11")
@pytest.mark.parametrize(
    "figure", [None, -1, "12", 10**18, 1.5, float("nan"), float("inf"), Decimal("NaN"), True, [], {}]
)
@pytest.mark.parametrize("field", ["input_tokens", "output_tokens"])
def test_a_senseless_figure_is_replaced_by_our_own_estimate(field: str, figure: object) -> None:
    usage: dict[str, object] = {"input_tokens": 10, "output_tokens": 10, field: figure}
    assert sane_usage(usage, ESTIMATE) == (ESTIMATE, "estimated")


@proves("M11", part="never negative")
@given(
    st.dictionaries(
        st.sampled_from(["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost"]),
        st.one_of(
            st.integers(),
            st.floats(),
            st.text("0123456789-e. ", max_size=8),
            st.none(),
            st.decimals(),
            st.booleans(),
        ),
    )
)
def test_no_reported_usage_makes_a_negative_or_boundless_charge(usage: dict[str, object]) -> None:
    vector = compute_actual_usage(PRICE, usage, ESTIMATE)
    assert all(0 <= amount < 10**9 for amount in vector.values())


def test_cached_tokens_beyond_the_input_are_cut() -> None:
    usage, counted = sane_usage({"input_tokens": 10, "output_tokens": 1, "cache_read_tokens": 99}, ESTIMATE)
    assert (usage["cache_read_tokens"], counted) == (Decimal(10), "provider")


def test_a_scripted_model_is_free_because_it_says_so() -> None:
    assert worst_cost(ModelPrice.free("scripted", "demo"), Decimal(10**6), Decimal(10**6)) == 0
