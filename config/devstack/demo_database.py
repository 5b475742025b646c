"""The demo company's books as a PostgreSQL database, used to try sql.query and sql.write.

The database is a copy of the company's initial data; later changes by its own services do not reach the copy.
"""

from __future__ import annotations

import json
import secrets
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql

from config.devstack.embedded import EmbeddedPostgres

DATABASE: Final = "company"
READER: Final = "company_reader"
WRITER: Final = "company_writer"
PRODUCT: Final = ("sku", "name", "price", "currency", "final_sale")
Stock = dict[str, list[dict[str, Any]]]
TABLES: Final = """
CREATE TABLE products (sku text PRIMARY KEY, name text NOT NULL, price numeric(12, 2) NOT NULL,
  currency text NOT NULL, final_sale boolean NOT NULL);
CREATE TABLE orders (id text PRIMARY KEY, customer text NOT NULL, email text NOT NULL, status text NOT NULL,
  placed_at date NOT NULL, delivered_at date);
CREATE TABLE order_items (order_id text REFERENCES orders, sku text REFERENCES products,
  quantity integer NOT NULL CHECK (quantity > 0), PRIMARY KEY (order_id, sku));
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO company_reader, company_writer;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO company_reader, company_writer;
GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO company_writer;
"""


def fresh_passwords() -> dict[str, str]:
    """Return new passwords of the two roles, valid until the stack is stopped."""
    return {role: secrets.token_urlsafe(32) for role in (READER, WRITER)}


def format_database_urls(
    postgres: EmbeddedPostgres, passwords: dict[str, str], database: str = DATABASE
) -> str:
    """Return the value of INTERLOCK_DATABASES for the demo database."""
    roles = {"reader": READER, "writer": WRITER}
    urls = {
        name: f"postgresql://{role}:{passwords[role]}@/{database}?host={postgres.sockets}"
        for name, role in roles.items()
    }
    return json.dumps({"company": urls})


def create_demo_database(
    postgres: EmbeddedPostgres, passwords: dict[str, str], database: str = DATABASE
) -> None:
    """Create the roles with these passwords, and the database with its initial data.

    An existing role gets the new password. Existing data are kept.
    """
    rights = sql.SQL("LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB NOREPLICATION PASSWORD")
    with postgres.connect() as connection:
        known = {row[0] for row in connection.execute("SELECT rolname FROM pg_roles")}
        for role, password in passwords.items():
            verb = sql.SQL("ALTER ROLE" if role in known else "CREATE ROLE")
            parts = (verb, sql.Identifier(role), rights, sql.Literal(password))
            connection.execute(sql.SQL(" ").join(parts))
    postgres.ensure_database(database)
    with postgres.connect(database) as connection, connection.transaction():
        if connection.execute("SELECT to_regclass('public.products')").fetchone() != (None,):
            return
        connection.execute(TABLES)
        _insert_stock(connection, _load_stock())


def _insert_stock(connection: psycopg.Connection, stock: Stock) -> None:
    products = [tuple(one[name] for name in PRODUCT) for one in stock["products"]]
    orders = [_build_order_row(one) for one in stock["orders"]]
    items = [(one["id"], sku, quantity) for one in stock["orders"] for sku, quantity in one["items"]]
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO products VALUES (%s, %s, %s, %s, %s)", products)
        cursor.executemany("INSERT INTO orders VALUES (%s, %s, %s, %s, %s, %s)", orders)
        cursor.executemany("INSERT INTO order_items VALUES (%s, %s, %s)", items)


def _build_order_row(one: dict[str, Any]) -> tuple[Any, ...]:
    customer = one["customer"]
    return (
        one["id"], customer["name"], customer["email"], one["status"], one["placed_at"],
        one.get("delivered_at"),
    )  # fmt: skip


def _load_stock() -> Stock:
    """Load the initial data that the company's own process also starts with."""
    found = find_spec("demo")
    assert found is not None and found.origin is not None  # noqa: PT018, S101 - one fact: the package is here
    stock: Stock = json.loads((Path(found.origin).parent / "storage" / "stock.json").read_bytes())
    return stock
