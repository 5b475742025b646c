"""Holds for an order until its shipment: reserved goods and authorized money.

A hold can be released; a second release has no further effect.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from demo import money
from demo.errors import Refusal, not_found
from demo.storage.repositories import Body, Line
from demo.storage.store import Store, format_current_time

SERVICE = {"stock": "stock", "payment": "payments"}


class HoldBody(Body):
    """The hold to take: a quantity of an article, or an amount of the order's money."""

    kind: Literal["stock", "payment"]
    order_id: Line
    sku: Annotated[str, Field(max_length=64)] = ""
    quantity: Annotated[int, Field(ge=0, le=1000)] = 0
    amount: money.Positive = "0.00"


class ReleaseBody(Body):
    """The hold to release."""

    hold_id: Line


class ShipmentBody(Body):
    """The order to ship."""

    order_id: Line


class Reservations:
    """Holds and shipments, each once per key."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def take(self, body: HoldBody, key: str) -> dict[str, Any]:
        """Take a hold once per key.

        Raises: Refusal: 404 no such order, 409 the key with another body.
        """
        with self._store.open_transaction():
            self._order(body.order_id)
            asked = body.model_dump_json()
            before = self._store.rows("select * from holds where key = ?", key)
            if before and before[0]["asked"] != asked:
                raise Refusal(409, "key_used_for_another_hold", "This key belongs to another hold.")
            if before:
                return _serialize_hold(before[0])
            number = self._store.insert(
                "holds", at=format_current_time(), asked=asked, key=key, status="held"
            )
            hold = self.find(f"HD-{number:06d}")
            self._store.log(SERVICE[body.kind], "hold", key=key, reference=body.order_id, body=hold)
        return hold

    def release(self, body: ReleaseBody, key: str) -> dict[str, Any]:
        """Release a hold; a second release has no further effect.

        Raises: Refusal: 404 no such hold, 409 for a used hold.
        """
        with self._store.open_transaction():
            hold = self.find(body.hold_id)
            if hold["status"] == "used":
                raise Refusal(409, "hold_was_used", "What was shipped is held no more.")
            if hold["status"] == "held":
                self._store.change(
                    "update holds set status = 'released' where 'HD-' || printf('%06d', id) = ?", hold["id"]
                )
                hold = hold | {"status": "released"}
                service = SERVICE[hold["kind"]]
                self._store.log(service, "release", key=key, reference=hold["order_id"], body=hold)
        return hold

    def find(self, name: str) -> dict[str, Any]:
        """Return a hold by its id.

        Raises: Refusal 404.
        """
        found = self._store.rows("select * from holds where 'HD-' || printf('%06d', id) = ?", name)
        if not found:
            raise not_found("hold", name)
        return _serialize_hold(found[0])

    def of_key(self, key: str) -> list[dict[str, Any]]:
        """List the hold that was taken under a key."""
        return [_serialize_hold(row) for row in self._store.rows("select * from holds where key = ?", key)]

    def ship(self, body: ShipmentBody, key: str) -> dict[str, Any]:
        """Ship the held goods of an order, once per key.

        Raises: Refusal: 404 no such order, 422 nothing is held, or the order was cancelled.
        """
        with self._store.open_transaction():
            before = self._store.rows("select * from shipments where key = ?", key)
            if before:
                return _serialize_shipment(before[0])
            order = self._order(body.order_id)
            if order["status"] == "cancelled":
                raise Refusal(422, "not_deliverable", "The order was cancelled; nobody would take it in.")
            query = "select id from holds where status = 'held' and json_extract(asked, '$.order_id') = ?"
            if not self._store.rows(query, body.order_id):
                raise Refusal(422, "nothing_held", "Nothing is set aside for this order.")
            self._store.change(
                "update holds set status = 'used' where status = 'held'"
                " and json_extract(asked, '$.order_id') = ?", body.order_id,
            )  # fmt: skip
            number = self._store.insert(
                "shipments", at=format_current_time(), order_id=body.order_id, key=key
            )
            made = _serialize_shipment(self._store.rows("select * from shipments where id = ?", number)[0])
            self._store.log("shipping", "ship", key=key, reference=body.order_id, body=made)
        return made

    def shipments(self, order_id: str) -> list[dict[str, Any]]:
        """List the shipments of an order, oldest first."""
        query = "select * from shipments where order_id = ? order by id"
        return [_serialize_shipment(row) for row in self._store.rows(query, order_id)]

    def _order(self, order_id: str) -> dict[str, Any]:
        found = self._store.rows("select document from orders where id = ?", order_id)
        if not found:
            raise not_found("order", order_id)
        order: dict[str, Any] = json.loads(found[0]["document"])
        return order


def _serialize_hold(row: dict[str, Any]) -> dict[str, Any]:
    name = f"HD-{row['id']:06d}"
    return {
        "id": name,
        **json.loads(row["asked"]),
        "status": row["status"],
        "key": row["key"],
        "at": row["at"],
    }


def _serialize_shipment(row: dict[str, Any]) -> dict[str, Any]:
    return {"id": f"SH-{row['id']:06d}", "order_id": row["order_id"], "key": row["key"], "at": row["at"]}
