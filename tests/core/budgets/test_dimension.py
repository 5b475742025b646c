"""The vector's dimensions are those of the specification, in its order."""

from decimal import Decimal

import pytest

from budgets.core.amounts import NOTHING, Vector
from budgets.core.dimension import ABOUT, GAUGES, Dimension
from budgets.core.errors import AmountInvalid, DimensionUnknown
from tests.proves import proves
from traces.core.canonical import format_decimal


@proves("R-BUDGET-1", part="dimensions")
def test_every_dimension_of_the_vector_stands_in_its_order() -> None:
    assert [str(dimension) for dimension in Dimension] == [
        "steps", "model_turns", "tool_calls", "external_calls", "input_tokens", "output_tokens",
        "total_tokens", "cost_usd", "wall_clock_seconds", "retries", "reflections", "replans",
        "context_tokens", "memory_writes", "side_effects", "granted_side_effects", "depth", "transitions",
    ]  # fmt: skip


@proves("R-BUDGET-16", part="gauges")
def test_three_dimensions_are_compared_and_not_summed() -> None:
    assert {Dimension.RETRIES, Dimension.CONTEXT_TOKENS, Dimension.DEPTH} == GAUGES


def test_every_dimension_has_a_unit_and_a_sentence() -> None:
    assert all(ABOUT[dimension].unit and ABOUT[dimension].sentence.endswith(".") for dimension in Dimension)


def test_an_unknown_amount_is_none_and_not_zero() -> None:
    assert Vector.of({"steps": Decimal(3), "replans": None}).get("replans") is None


def test_a_vector_is_ordered_as_its_dimensions() -> None:
    assert list(Vector.of({"depth": Decimal(1), "steps": Decimal(2)})) == ["steps", "depth"]


def test_a_foreign_dimension_is_refused() -> None:
    with pytest.raises(DimensionUnknown):
        Vector.of({"gold": Decimal(1)})


@pytest.mark.parametrize("amount", ["NaN", "Infinity", "1e18", "-1e30", "0.0000000000001"])
def test_an_amount_no_line_can_hold_is_refused(amount: str) -> None:
    with pytest.raises(AmountInvalid):
        Vector.of({"cost_usd": Decimal(amount)})


@pytest.mark.parametrize(
    ("amount", "text"), [("1.500", "1.5"), ("1E+3", "1000"), ("-0", "0"), ("0.000", "0"), ("100", "100")]
)
def test_an_amount_has_one_form(amount: str, text: str) -> None:
    assert format_decimal(Decimal(amount)) == text


def test_a_vector_reads_what_it_wrote() -> None:
    vector = Vector.of({"steps": Decimal(3), "cost_usd": Decimal("0.0250")})
    assert Vector.read(vector.canonical()) == vector


def test_sums_differences_and_clamps_go_by_dimension() -> None:
    left = Vector.of({"steps": Decimal(3), "cost_usd": Decimal(2)})
    right = Vector.of({"steps": Decimal(5)})
    assert left.plus(right)["steps"] == 8
    assert NOTHING.minus(right)["steps"] == -5
    assert right.with_upper_bound(left) == Vector.of({"steps": Decimal(3)})
    assert right.above(left) == Vector.of({"steps": Decimal(2)})


def test_limits_together_are_the_tighter_of_both() -> None:
    left = Vector.of({"steps": Decimal(3), "cost_usd": Decimal(9)})
    right = Vector.of({"cost_usd": Decimal(5), "replans": Decimal(1)})
    assert left.with_tighter_limits(right) == Vector.of(
        {"steps": Decimal(3), "cost_usd": Decimal(5), "replans": Decimal(1)}
    )
