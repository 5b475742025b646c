"""What the page of tools says of their use: how many calls there were, and the share of them that failed."""

import re

import pytest
from pytest_django import Settings

from tests.doors.pages.people import at, text
from tests.doors.pages.people import world as world
from tests.doubles.company import Company
from tests.factories.foreign import Obedient, called, foreign, onwards
from tests.factories.world import World, company_at
from tests.proves import proves

KNOWN, UNKNOWN = ("A-1001", "A-1002", "A-1003", "A-1004"), ("A-9998", "A-9999")


def row_of(page: str, tool: str) -> str:
    """The words of one tool's row."""
    (row,) = (found for found in page.split("<tr data-item>") if f">{tool}<" in found)
    return " ".join(re.sub(r"<[^>]+>", " ", row.partition("</tr>")[0]).split())


@proves("R-UI-5", part="the share of calls that failed")
@pytest.mark.parametrize(
    ("orders", "said"),
    [
        (KNOWN[:2], "2 0 "),
        ((*KNOWN[:2], UNKNOWN[0]), "3 1 (33 %)"),
        ((KNOWN[0], *UNKNOWN), "3 2 (67 %)"),
        (UNKNOWN[:1], "1 1 (100 %)"),
    ],
)
def test_the_page_says_which_share_of_a_tool_s_calls_failed(
    world: World, company: Company, settings: Settings, orders: tuple[str, ...], said: str
) -> None:
    model = Obedient(*(called("orders.lookup", order_id=order) for order in orders))
    with company_at(company.url), foreign(settings, model):
        onwards(world, world.submit("tool-loop", f"Look up {', '.join(orders)}."))
    page = text(at(world.people.admin).get("/tools"))
    assert f" {said}" in row_of(page, "orders.lookup")
    assert " 0 0 " in row_of(page, "policy.evaluate")
