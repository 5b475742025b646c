"""The demo company's books as a database: filled once, read by one role, written by the other."""

from __future__ import annotations

import json

import pytest
from pytest_django import Settings

from config.devstack import demo_database
from orchestrator.core.domain.run_events import ToolAnswered
from orchestrator.outbound.gateways.async_executor import EffectLoop
from tests.conftest import House
from tests.doors.gateways.conftest import loop as loop
from tests.doors.gateways.houses import use_in_house
from tests.proves import proves
from tests.servers import TestServers, locked

ASKED = """SELECT o.id, i.sku, p.price FROM orders o JOIN order_items i ON i.order_id = o.id
JOIN products p USING (sku)"""


@pytest.fixture
def books(servers: TestServers) -> str:
    """The settings of a database with the company's books, in this process's own copy."""
    name, passwords = f"books_{servers.database}", demo_database.fresh_passwords()
    with locked("company"):
        for _ in range(2):
            demo_database.create_demo_database(servers.postgres, passwords, name)
    return demo_database.format_database_urls(servers.postgres, passwords, name)


@proves("R-TOOL-19", part="the demo company's database")
def test_the_books_are_read_and_changed_by_the_tools(
    books: str, house: House, loop: EffectLoop, settings: Settings
) -> None:
    settings.INTERLOCK_DATABASES = json.loads(books)
    given = {"source": "company", "query": f"{ASKED} WHERE o.id = $1", "parameters": ["A-1001"]}
    told = use_in_house(loop, house.tenant.id, "sql.query", given)
    assert isinstance(told.event, ToolAnswered), told.bodies
    assert told.document(told.event.observation)["rows"] == [
        {"id": "A-1001", "sku": "GRINDER-H", "price": "129.90"}
    ]
    change = {
        "source": "company", "statement": "UPDATE orders SET status = 'closed' WHERE id = 'A-1001'",
        "expected_rows": 1,
    }  # fmt: skip
    assert isinstance(use_in_house(loop, house.tenant.id, "sql.write", change).event, ToolAnswered)
    other = use_in_house(loop, house.tenant.id, "sql.query", {**given, "source": "none"})
    assert "there are company" in other.text(other.event.detail)
