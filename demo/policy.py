"""The refund policy: a function of the order, the amount already refunded and the company's day."""

from __future__ import annotations

from datetime import date
from typing import Any

from demo import money

WINDOW_DAYS = 30


def evaluate_refund(
    *, order: dict[str, Any], refunded: int, amount: int | None, today: date
) -> dict[str, Any]:
    """Return whether `amount` cents (None: all) of `order` may be refunded on `today`, and by which rule."""
    most = _compute_max_refund(order, refunded)
    rule, reason = _select_refund_rule(order, most=most, refunded=refunded, amount=amount, today=today)
    refundable = rule == "within-window"
    offered = most if refundable or rule == "amount-too-high" else 0
    return {
        "order_id": order["id"],
        "refundable": refundable,
        "rule": rule,
        "max_amount": money.format_cents(offered),
        "currency": order["currency"],
        "reason": reason,
    }


def _compute_max_refund(order: dict[str, Any], refunded: int) -> int:
    returnable: int = sum(
        money.parse_cents(item["unit_price"]) * item["quantity"]
        for item in order["items"]
        if not item["final_sale"]
    )
    return max(0, returnable - refunded)


def _select_refund_rule(
    order: dict[str, Any], *, most: int, refunded: int, amount: int | None, today: date
) -> tuple[str, str]:
    """Return the first rule that forbids the refund, else the rule that allows it."""
    delivered, currency = order["delivered_at"], order["currency"]
    days = (today - date.fromisoformat(delivered)).days if delivered else 0
    forbidding = (
        (order["status"] == "cancelled", "cancelled", "The order was cancelled and never charged."),
        (delivered is None, "not-delivered", "The order has not been delivered yet."),
        (_all_final(order), "final-sale", "Every item of the order was sold as final sale."),
        (most == 0, "already-refunded", f"{money.format_cents(refunded)} {currency} were refunded already."),
        (days > WINDOW_DAYS, "too-old", f"Delivered {days} days ago; refunds end after {WINDOW_DAYS} days."),
        (
            amount is not None and amount > most,
            "amount-too-high",
            f"At most {money.format_cents(most)} {currency} can be refunded.",
        ),
    )
    allowing = ("within-window", f"Delivered {days} days ago; up to {money.format_cents(most)} {currency}.")
    return next(((rule, reason) for forbidden, rule, reason in forbidding if forbidden), allowing)


def _all_final(order: dict[str, Any]) -> bool:
    return all(item["final_sale"] for item in order["items"])
