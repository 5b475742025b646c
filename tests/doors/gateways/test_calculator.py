"""calculator.evaluate: exact, bounded, and closed to everything that is not arithmetic."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.tools.gateways.builtin.calculator import evaluate_expression
from orchestrator.tools.gateways.egress.service_client import CallFailed
from tests.proves import proves

numbers = st.decimals(min_value=-(10**12), max_value=10**12, places=4).map(lambda value: f"{value:f}")
sums = st.recursive(
    numbers.map(lambda text: f"({text})"),
    lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda parts: f"({''.join(parts)})"),
    max_leaves=12,
)


def _refusal(expression: str) -> str:
    with pytest.raises(CallFailed) as caught:
        evaluate_expression(expression)
    assert (caught.value.error, caught.value.transient) == ("refused", False)
    return caught.value.detail.decode()


def _as_fraction(expression: str) -> Fraction:
    """The same sum by Python itself, over fractions."""
    text = expression
    for number in sorted(set(_literals(expression)), key=len, reverse=True):
        text = text.replace(f"({number})", f"(Fraction('{number}'))")
    value: Fraction = eval(text, {"Fraction": Fraction})  # noqa: S307 - a sum this test has written
    return value


def _literals(expression: str) -> list[str]:
    found = [part.split(")")[0] for part in expression.split("(")]
    return [part for part in found if part and part[-1].isdigit()]


@proves("R-TOOL-19", part="calculator is exact")
@settings(deadline=None, max_examples=200)
@given(sums)
def test_sums_and_products_are_exact(expression: str) -> None:
    if len(expression) <= 1_000:
        found = evaluate_expression(expression)
        assert found.exact
        assert Fraction(found.result) == _as_fraction(expression)


@settings(deadline=None)
@given(numbers, numbers)
def test_a_quotient_and_its_rest_make_the_whole(left: str, right: str) -> None:
    if Decimal(right) != 0:
        quotient = Decimal(evaluate_expression(f"({left}) // ({right})").result)
        rest = Decimal(evaluate_expression(f"({left}) % ({right})").result)
        assert quotient * Decimal(right) + rest == Decimal(left)
        assert rest == 0 or (rest < 0) == (Decimal(right) < 0)


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_a_result_or_a_refusal(text: str) -> None:
    try:
        assert Decimal(evaluate_expression(text).result).is_finite()
    except CallFailed as refusal:
        assert refusal.error == "refused"  # noqa: PT017 - either way is right, a crash is not


@pytest.mark.parametrize(
    ("expression", "result", "exact"),
    [
        ("3 * 129.90", "389.70", True),
        ("0.1 + 0.2", "0.3", True),
        ("round(2.665, 2)", "2.67", True),
        ("round(1234.5, -2)", "1200", True),
        ("-7 // 2", "-4", True),
        ("2 ** -2", "0.25", True),
        ("1 / 3", "0.3333333333333333333333333333", False),
        ("max(1, 2.5) + min(3, -1) + sum(1, 2) + abs(-4)", "8.5", True),
        ("1_000 * 2", "2000", True),
        ("-0.0", "0.0", True),
    ],
)
def test_worked_examples(expression: str, result: str, *, exact: bool) -> None:
    found = evaluate_expression(expression)
    assert (found.result, found.exact) == (result, exact)


@pytest.mark.parametrize(
    "expression",
    [
        "9 ** 9 ** 9",
        "10 ** 1001",
        "1e9999",
        "2 ** 0.5",
        "1 / 0",
        "0 / 0",
        "5 // 0",
        "5 % 0",
        "-" * 900 + "1",
        "1" * 1_001,
        "1,250 + 1",
        "2 ^ 3",
        "0x10",
        "1j",
        "True",
        "'a' * 9",
        "(1).real",
        "__import__('os')",
        "[1 for _ in ()]",
        "max()",
        "round(1, 2, 3)",
        "abs(1, 2)",
        "max(*(1, 2))",
        "x",
        "",
        "~1",
        "not 1",
    ],
)
def test_what_is_no_bounded_arithmetic_is_refused_with_a_reason(expression: str) -> None:
    assert _refusal(expression)
