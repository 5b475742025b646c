"""Records of each service. Every write is one commit together with its effect in the log."""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from demo import money, policy
from demo.errors import Refusal, not_found
from demo.storage.store import Store, format_current_time

Line = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"\A[^\x00-\x1f\x7f]*\z")]


class Body(BaseModel):
    """Base of request bodies: exactly these fields, of exactly these types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class RefundBody(Body):
    """A refund for an order."""

    order_id: Line
    amount: money.Positive
    currency: money.Currency
    reason: Annotated[str, StringConstraints(max_length=2000)] = ""


class MessageBody(Body):
    """A message to a customer. `reference` is the caller's own name for it."""

    to: Annotated[str, StringConstraints(max_length=254, pattern=r"\A[^@\s,;<>]+@[^@\s,;<>]+\z")]
    subject: Line
    text: Annotated[str, StringConstraints(min_length=1, max_length=20_000)]
    reference: Line


class EntryBody(Body):
    """A line of the ledger."""

    account: Line
    amount: money.Signed
    memo: Annotated[str, StringConstraints(max_length=2000)] = ""


class PolicyQuery(BaseModel):
    """The order to judge and, if given, the amount to refund."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    order_id: str = Field(min_length=1, max_length=200)
    amount: money.Positive | None = None


class Repositories:
    """The operations of the services. `today` is a fixed day, so that no outcome depends on the calendar."""

    def __init__(self, store: Store, today: date | None = None) -> None:
        self.store = store
        self.today = today or self._day_after_the_newest_order()

    def _day_after_the_newest_order(self) -> date:
        orders = (json.loads(row["document"]) for row in self.store.rows("select document from orders"))
        days = (day for order in orders for day in (order["placed_at"], order["delivered_at"]) if day)
        return date.fromisoformat(max(days)) + timedelta(days=1)

    def _order(self, order_id: str) -> dict[str, Any]:
        found = self.store.rows("select document from orders where id = ?", order_id)
        if not found:
            raise not_found("order", order_id)
        order: dict[str, Any] = json.loads(found[0]["document"])
        return order

    def _sum_refunds(self, order_id: str) -> int:
        query = "select coalesce(sum(amount), 0) as cents from refunds where order_id = ?"
        return int(self.store.rows(query, order_id)[0]["cents"])

    def order(self, order_id: str) -> dict[str, Any]:
        """Return an order with its refunded amount and the resulting status.

        Raises: Refusal 404.
        """
        order, refunded = self._order(order_id), self._sum_refunds(order_id)
        if refunded:
            whole = refunded >= money.parse_cents(order["total"])
            order["status"] = "refunded" if whole else "partially_refunded"
        return order | {"refunded": money.format_cents(refunded)}

    def product(self, sku: str) -> dict[str, Any]:
        """Return a product of the catalogue.

        Raises: Refusal 404.
        """
        found = self.store.rows("select document from products where sku = ?", sku)
        if not found:
            raise not_found("product", sku)
        product: dict[str, Any] = json.loads(found[0]["document"])
        return product

    def judge(self, asked: PolicyQuery) -> dict[str, Any]:
        """Evaluate the refund policy.

        Raises: Refusal 404.
        """
        amount = money.parse_cents(asked.amount) if asked.amount is not None else None
        order, refunded = self._order(asked.order_id), self._sum_refunds(asked.order_id)
        return policy.evaluate_refund(order=order, refunded=refunded, amount=amount, today=self.today)

    def refund(self, body: RefundBody, key: str) -> tuple[dict[str, Any], bool]:
        """Refund once per key; the second value is whether this key had been used before.

        Raises: Refusal: 409 the key with another body, 404 no such order, 422 wrong currency, no amount or
        too much.
        """
        amount = money.parse_cents(body.amount)
        with self.store.open_transaction():
            before = self.store.rows("select * from refunds where key = ?", key)
            if before:
                return _replay_refund(before[0], body, amount), True
            self._check(body, amount)
            values = body.model_dump() | {"amount": amount}
            number = self.store.insert("refunds", at=format_current_time(), key=key, **values)
            refund = _serialize_refund(self.store.rows("select * from refunds where id = ?", number)[0])
            self.store.log("payments", "refund", key=key, reference=body.order_id, body=refund)
        return refund, False

    def _check(self, body: RefundBody, amount: int) -> None:
        order = self._order(body.order_id)
        left = money.parse_cents(order["total"]) - self._sum_refunds(body.order_id)
        if body.currency != order["currency"]:
            raise Refusal(422, "wrong_currency", f"The order was paid in {order['currency']}.")
        if amount == 0:
            raise Refusal(422, "nothing_to_refund", "The amount must be more than 0.00.")
        if amount > left:
            raise Refusal(
                422, "more_than_remains", f"{money.format_cents(left)} of the order's total remain."
            )

    def find_refund(self, name: str) -> dict[str, Any]:
        """Return a refund by its id.

        Raises: Refusal 404.
        """
        found = self.store.rows("select * from refunds where 'RF-' || printf('%06d', id) = ?", name)
        if not found:
            raise not_found("refund", name)
        return _serialize_refund(found[0])

    def refunds(self, *, order_id: str | None, key: str | None) -> list[dict[str, Any]]:
        """List the refunds of an order, or the one of a key, oldest first."""
        query = "select * from refunds where (? = '' or order_id = ?) and (? = '' or key = ?) order by id"
        values = (order_id or "", order_id or "", key or "", key or "")
        return [_serialize_refund(row) for row in self.store.rows(query, *values)]

    def send(self, body: MessageBody, key: str | None) -> dict[str, Any]:
        """Send a message. Two calls send two messages: a key is recorded for the judge, but not honoured."""
        values = body.model_dump(exclude={"to"})
        with self.store.open_transaction():
            number = self.store.insert("messages", at=format_current_time(), recipient=body.to, **values)
            message = _serialize_message(self.store.rows("select * from messages where id = ?", number)[0])
            self.store.log("mail", "send", key=key, reference=body.reference, body=message)
        return message

    def messages(self, reference: str) -> list[dict[str, Any]]:
        """List the messages sent under a reference, oldest first."""
        query = "select * from messages where reference = ? order by id"
        return [_serialize_message(row) for row in self.store.rows(query, reference)]

    def post(self, body: EntryBody, key: str | None) -> dict[str, Any]:
        """Post a ledger entry. A caller has no means to find out later whether it was posted."""
        amount = money.parse_cents(body.amount)
        values = body.model_dump() | {"amount": amount}
        with self.store.open_transaction():
            number = self.store.insert("entries", at=format_current_time(), **values)
            entry = {"id": f"L-{number:06d}", **values, "amount": money.format_cents(amount)}
            self.store.log("ledger", "post", key=key, reference=body.account, body=entry)
        return entry


def _replay_refund(row: dict[str, Any], body: RefundBody, amount: int) -> dict[str, Any]:
    asked = (body.order_id, amount, body.currency, body.reason)
    if asked != (row["order_id"], row["amount"], row["currency"], row["reason"]):
        raise Refusal(409, "key_used_for_another_refund", "This key belongs to a refund with other content.")
    return _serialize_refund(row)


def _serialize_refund(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"RF-{row['id']:06d}",
        "order_id": row["order_id"],
        "amount": money.format_cents(row["amount"]),
        "currency": row["currency"],
        "reason": row["reason"],
        "status": "succeeded",
        "created_at": row["at"],
        "key": row["key"],
    }


def _serialize_message(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"M-{row['id']:06d}",
        "to": row["recipient"],
        "subject": row["subject"],
        "text": row["text"],
        "reference": row["reference"],
        "sent_at": row["at"],
    }
