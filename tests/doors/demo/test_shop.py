"""Orders and the refund policy, over HTTP from the real process."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.doubles.company import Company

ORDERS = [f"A-{number}" for number in range(1001, 1016)]


def test_an_order_has_everything_a_clerk_reads(company: Company) -> None:
    order = company.get("/orders/A-1001")
    assert order["customer"] == {"name": "Corner Café", "email": "orders@corner-cafe.example"}
    assert (order["total"], order["currency"], order["status"]) == ("129.90", "USD", "delivered")
    assert (order["placed_at"], order["delivered_at"]) == ("2026-02-20", "2026-02-25")
    assert [item["sku"] for item in order["items"]] == ["GRINDER-H"]


@pytest.mark.parametrize("order_id", ORDERS)
def test_a_total_is_the_sum_of_its_lines(company: Company, order_id: str) -> None:
    order = company.get(f"/orders/{order_id}")
    lines = sum(Decimal(item["unit_price"]) * item["quantity"] for item in order["items"])
    assert Decimal(order["total"]) == lines


def test_the_totals_reach_from_small_to_large(company: Company) -> None:
    totals = sorted(Decimal(company.get(f"/orders/{order_id}")["total"]) for order_id in ORDERS)
    assert (totals[0], totals[-1]) == (Decimal("4.50"), Decimal("899.00"))


@pytest.mark.parametrize(
    ("order_id", "rule", "most"),
    [
        ("A-1001", "within-window", "129.90"),
        ("A-1004", "too-old", "0.00"),
        ("A-1005", "final-sale", "0.00"),
        ("A-1006", "within-window", "29.80"),
        ("A-1007", "already-refunded", "0.00"),
        ("A-1008", "not-delivered", "0.00"),
        ("A-1010", "within-window", "64.00"),
        ("A-1011", "cancelled", "0.00"),
        ("A-1013", "within-window", "385.00"),
        ("A-1014", "too-old", "0.00"),
    ],
)
def test_the_policy_names_its_rule_and_the_most_it_allows(
    company: Company, order_id: str, rule: str, most: str
) -> None:
    verdict = company.get("/policy", order_id=order_id)
    assert (verdict["rule"], verdict["max_amount"]) == (rule, most)
    assert verdict["refundable"] is (rule == "within-window")
    assert verdict["reason"]


def test_more_than_the_policy_allows_is_not_refundable(company: Company) -> None:
    verdict = company.get("/policy", order_id="A-1006", amount="29.81")
    assert (verdict["refundable"], verdict["rule"]) == (False, "amount-too-high")
    assert company.get("/policy", order_id="A-1006", amount="29.80")["refundable"] is True


def test_the_day_does_not_drift_with_the_calendar(company: Company) -> None:
    assert company.get("/status") == {"status": "open", "today": "2026-03-14"}


def test_a_product_is_read_from_the_catalogue(company: Company) -> None:
    assert company.get("/catalog/KETTLE-15")["price"] == "64.00"


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/orders/A-9999", 404, "not_found"),
        ("/orders/..%2f..%2fetc", 404, "not_found"),
        ("/catalog/none", 404, "not_found"),
        ("/policy?order_id=A-9999", 404, "not_found"),
        ("/policy", 400, "invalid_query"),
        ("/policy?order_id=A-1001&amount=-1", 400, "invalid_query"),
        ("/policy?order_id=A-1001&amount=1e3", 400, "invalid_query"),
        ("/policy?order_id=A-1001&colour=red", 400, "invalid_query"),
        ("/policy?order_id=A-1001&order_id=A-1002", 400, "invalid_query"),
        ("/policy?order_id=%ff", 400, "invalid_query"),
        ("/payments/refunds/RF-999999", 404, "not_found"),
        ("/payments/refunds", 400, "invalid_query"),
        ("/mail/messages", 400, "invalid_query"),
        ("/ledger/entries", 405, "method_not_allowed"),
        ("/effects?since=-1", 400, "invalid_query"),
        ("/effects?service=kitchen", 400, "invalid_query"),
        ("/nowhere", 404, "not_found"),
    ],
)
def test_a_bad_question_is_refused_by_name(company: Company, path: str, status: int, code: str) -> None:
    answer = company.http.get(company.url + path)
    assert (answer.status_code, answer.json()["error"]) == (status, code)
    assert answer.json()["detail"]


def test_reading_leaves_no_effect(company: Company) -> None:
    company.get("/orders/A-1001")
    company.get("/policy", order_id="A-1001")
    assert company.effects() == []
