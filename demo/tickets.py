"""The company's tickets: customer complaints, each opened once per key and open until closed.

A second closure has no further effect.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field

from demo.errors import Refusal, not_found
from demo.storage.repositories import Body, Line
from demo.storage.store import Store, format_current_time


class TicketBody(Body):
    """The ticket to open."""

    order_id: Line
    subject: Annotated[str, Field(min_length=1, max_length=200)]
    text: Annotated[str, Field(min_length=1, max_length=4_000)]


class ClosureBody(Body):
    """The ticket to close."""

    ticket_id: Line


class Tickets:
    """Tickets, newest last."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def open_ticket(self, body: TicketBody, key: str) -> dict[str, Any]:
        """Open a ticket once per key.

        Raises: Refusal: 404 no such order, 409 the key with another body.
        """
        with self._store.open_transaction():
            if not self._store.rows("select 1 from orders where id = ?", body.order_id):
                raise not_found("order", body.order_id)
            asked = body.model_dump_json()
            before = self._store.rows("select * from tickets where key = ?", key)
            if before and before[0]["asked"] != asked:
                raise Refusal(409, "key_used_for_another_ticket", "This key belongs to another ticket.")
            if before:
                return _serialize_ticket(before[0])
            number = self._store.insert(
                "tickets", at=format_current_time(), asked=asked, key=key, status="open"
            )
            made = self.find(f"TK-{number:06d}")
            self._store.log("tickets", "open", key=key, reference=body.order_id, body=made)
        return made

    def close(self, body: ClosureBody, key: str) -> dict[str, Any]:
        """Close a ticket; a second closure has no further effect.

        Raises: Refusal 404.
        """
        with self._store.open_transaction():
            found = self.find(body.ticket_id)
            if found["status"] == "open":
                self._store.change(
                    "update tickets set status = 'closed' where 'TK-' || printf('%06d', id) = ?", found["id"]
                )
                found = found | {"status": "closed"}
                self._store.log("tickets", "close", key=key, reference=found["order_id"], body=found)
        return found

    def find(self, name: str) -> dict[str, Any]:
        """Return a ticket by its id.

        Raises: Refusal 404.
        """
        found = self._store.rows("select * from tickets where 'TK-' || printf('%06d', id) = ?", name)
        if not found:
            raise not_found("ticket", name)
        return _serialize_ticket(found[0])

    def of(self, *, order_id: str | None, key: str | None) -> list[dict[str, Any]]:
        """List the tickets of an order, of a key, or of both, oldest first."""
        rows = self._store.rows(
            "select * from tickets where (?1 is null or json_extract(asked, '$.order_id') = ?1)"
            " and (?2 is null or key = ?2) order by id", order_id, key,
        )  # fmt: skip
        return [_serialize_ticket(row) for row in rows]


def _serialize_ticket(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"TK-{row['id']:06d}", **json.loads(row["asked"]), "status": row["status"], "key": row["key"],
        "at": row["at"],
    }  # fmt: skip
