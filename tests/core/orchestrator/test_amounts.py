"""Amounts: what counts as the same one, and who must agree to it."""

from decimal import Decimal

import pytest

from orchestrator.core.tools.approval_thresholds import amount_of, count_required_approvers
from orchestrator.core.workflow.goal_inputs import is_same_value
from orchestrator.tools.gateways.company.payments import refund_payment
from tests.proves import proves


@pytest.mark.parametrize(
    ("found", "wanted", "equal"),
    [
        ("129.90", "129.9", True), ("129.90", "129.90", True), ("-1.0", "-1", True), ("1.00", "9.90", False),
        ("A-1", "A-1", True), ("A-1", "A-01", False), ("1e2", "100", False), (1, True, True),
        (100, "100", False), ("NaN", "NaN", True), ("٣", "3", False), (None, "0", False),
    ],
)  # fmt: skip
def test_two_values_are_the_same_if_equal_or_equal_as_amounts(
    found: object, wanted: object, equal: bool
) -> None:
    assert is_same_value(found, wanted) is equal


@proves("R-TOOL-12", part="the amount that was approved")
def test_a_refund_is_compared_with_the_amount_that_was_sent_and_read_back_with_it_too() -> None:
    verifier = refund_payment.spec.verifier
    assert verifier is not None
    assert verifier.equal["/result/amount"] == "/arguments/amount"
    assert verifier.read_back is not None
    assert verifier.read_back.equal["/amount"] == "/arguments/amount"


@proves("R-APPR-5", part="by amount and currency")
@pytest.mark.parametrize(
    ("amount", "currency", "people"),
    [
        ("200.00", "USD", 1), ("200.01", "USD", 2), ("1.00", "EUR", 2), ("1.00", None, 2), ("x", "USD", 2),
    ],
)  # fmt: skip
def test_another_currency_than_the_steps_asks_for_the_most(
    amount: str, currency: str | None, people: int
) -> None:
    arguments = {"amount": amount, "currency": currency}
    assert (
        count_required_approvers(refund_payment.spec, amount_of(refund_payment.spec, arguments), arguments)
        == people
    )


def test_an_amount_is_read_as_a_decimal() -> None:
    assert amount_of(refund_payment.spec, {"amount": "12.50"}) == Decimal("12.50")
    assert amount_of(refund_payment.spec, {}) is None
