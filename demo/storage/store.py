"""The company's database: one SQLite file, durable at every commit, with the effect log and the books."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from demo import money

_STOCK = Path(__file__).with_name("stock.json")
_TABLES = (
    "effects", "refunds", "messages", "entries", "restarts", "holds", "shipments", "tickets", "services",
    "orders", "products",
)  # fmt: skip
_SCHEMA = """
create table if not exists products (sku text primary key, document text not null) strict;
create table if not exists orders (id text primary key, document text not null) strict;
create table if not exists refunds (
    id integer primary key autoincrement, at text not null, order_id text not null references orders (id),
    amount integer not null check (amount > 0), currency text not null, reason text not null,
    key text not null unique) strict;
create table if not exists messages (
    id integer primary key autoincrement, at text not null, recipient text not null, subject text not null,
    text text not null, reference text not null) strict;
create index if not exists messages_by_reference on messages (reference);
create table if not exists entries (
    id integer primary key autoincrement, at text not null, account text not null, amount integer not null,
    memo text not null) strict;
create table if not exists services (
    name text primary key, cause text not null, instance integer not null check (instance > 0)) strict;
create table if not exists restarts (
    id integer primary key autoincrement, at text not null, service text not null references services (name),
    reason text not null, key text not null unique, instance integer not null) strict;
create table if not exists holds (
    id integer primary key autoincrement, at text not null, asked text not null, key text not null unique,
    status text not null check (status in ('held', 'released', 'used'))) strict;
create table if not exists shipments (
    id integer primary key autoincrement, at text not null, order_id text not null references orders (id),
    key text not null unique) strict;
create table if not exists tickets (
    id integer primary key autoincrement, at text not null, asked text not null, key text not null unique,
    status text not null check (status in ('open', 'closed'))) strict;
create table if not exists effects (
    id integer primary key autoincrement, at text not null, service text not null, action text not null,
    key text, reference text, body text not null) strict;
create trigger if not exists effects_keep_update before update on effects
    begin select raise(abort, 'the effect log is append-only'); end;
create trigger if not exists effects_keep_delete before delete on effects
    begin select raise(abort, 'the effect log is append-only'); end;
"""


def format_current_time() -> str:
    """Return the real time, RFC 3339 in UTC with microseconds. No decision of the company uses it."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


class Store:
    """One connection, used by one thread. Reads by `rows`, writes inside `writing`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(folder / "company.sqlite3", isolation_level=None)
        self._db.row_factory = sqlite3.Row
        for pragma in ("journal_mode=wal", "synchronous=full", "foreign_keys=on", "busy_timeout=5000"):
            self._db.execute(f"pragma {pragma}")
        # Otherwise `insert or replace` would delete a row without the delete trigger.
        self._db.execute("pragma recursive_triggers=on")
        with self.open_transaction():
            self._create()

    def _create(self) -> None:
        # executescript would commit the transaction it is called in.
        statement = ""
        for line in _SCHEMA.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                self._db.execute(statement)
                statement = ""
        fresh = not self.rows("select 1 from orders limit 1")
        self._stock(fresh=fresh)

    def _stock(self, *, fresh: bool) -> None:
        """Insert the initial data; a company of an earlier version gets only its missing orders."""
        stock = json.loads(_STOCK.read_text("utf-8"))
        products = {product["sku"]: product for product in stock["products"]}
        known = {row["id"] for row in self.rows("select id from orders")}
        for raw in stock["orders"]:
            if raw["id"] not in known:
                document = json.dumps(_build_order_document(raw, products), ensure_ascii=False)
                self.insert("orders", id=raw["id"], document=document)
        if not fresh:
            return
        for product in stock["products"]:
            self.insert("products", sku=product["sku"], document=json.dumps(product))
        for refund in stock["refunds"]:
            row = refund | {"amount": money.parse_cents(refund["amount"])}
            self.insert("refunds", at="2026-03-01T09:00:00Z", key=f"stock-{refund['order_id']}", **row)

    @contextmanager
    def open_transaction(self) -> Iterator[None]:
        """Open one transaction, so that the books and the effect log cannot differ."""
        self._db.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._db.execute("rollback")
            raise
        self._db.execute("commit")

    def rows(self, query: str, *values: str | int | None) -> list[dict[str, Any]]:
        """Return the rows of a query, each as a dictionary."""
        return [dict(row) for row in self._db.execute(query, values)]

    def insert(self, table: str, **values: str | int | None) -> int:
        """Insert one row and return its id. Names of tables and columns come from this package alone."""
        columns, marks = ", ".join(values), ", ".join("?" * len(values))
        query = f"insert into {table} ({columns}) values ({marks})"  # noqa: S608 - see the docstring
        return self._db.execute(query, tuple(values.values())).lastrowid or 0

    def change(self, statement: str, *values: str | int) -> None:
        """Execute one statement that changes rows. Only inside `writing`."""
        self._db.execute(statement, values)

    def log(
        self, service: str, action: str, *, key: str | None, reference: str | None, body: dict[str, Any]
    ) -> None:
        """Append one effect to the log, in the transaction that caused it."""
        document = json.dumps(body, ensure_ascii=False)
        self.insert(
            "effects",
            at=format_current_time(),
            service=service,
            action=action,
            key=key,
            reference=reference,
            body=document,
        )

    def effects(self, *, service: str | None, since: int) -> list[dict[str, Any]]:
        """List the effects with an id above `since`, oldest first."""
        query = "select * from effects where id > ? and (? = '' or service = ?) order by id"
        found = self.rows(query, since, service or "", service or "")
        return [row | {"body": json.loads(row["body"])} for row in found]

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def reset(self) -> None:
        """Restore the initial data and an empty log. Tables are dropped: their rows cannot be deleted."""
        with self.open_transaction():
            for table in _TABLES:
                self._db.execute(f"drop table if exists {table}")
            self._create()


def _build_order_document(raw: dict[str, Any], products: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Build an order of the stock file with its lines and total."""
    bought = [(products[sku], quantity) for sku, quantity in raw["items"]]
    items = [
        {
            "sku": product["sku"],
            "name": product["name"],
            "quantity": quantity,
            "unit_price": product["price"],
            "final_sale": product["final_sale"],
        }
        for product, quantity in bought
    ]
    total = sum(money.parse_cents(product["price"]) * quantity for product, quantity in bought)
    return {
        "id": raw["id"],
        "customer": raw["customer"],
        "items": items,
        "total": money.format_cents(total),
        "currency": bought[0][0]["currency"],
        "status": raw["status"],
        "placed_at": raw["placed_at"],
        "delivered_at": raw["delivered_at"],
    }
