"""The facts of a run a stretch at a time: a run may know thousands (R-UI-3, R-UI-12)."""

import re
from uuid import UUID

import pytest
from django.test import Client

from orchestrator.console.queries import run_contents
from orchestrator.runs.queries.runs import state_now
from tenancy.db.tenant_context import tenant_transaction
from tests.doors.pages.people import at, refund, text
from tests.doors.pages.people import world as world
from tests.doubles.company import Company
from tests.factories.world import World
from tests.proves import proves


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two facts are a stretch."""
    monkeypatch.setattr(run_contents, "FACTS", 2)


def told(reader: Client, run: UUID, query: str = "") -> tuple[list[str], str]:
    """The facts that the tab names, in order, and the page."""
    page = text(reader.get(f"/runs/{run}?tab=facts{query}"))
    return re.findall('<tr id="fact-([^"]+)"', page), page


@proves("R-UI-12", part="a run that knows thousands of facts shows the newest")
@pytest.mark.usefixtures("short")
def test_the_newest_facts_are_shown_and_lead_to_those_before(world: World, company: Company) -> None:
    run, reader = refund(world, company, whole=True), at(world.people.auditor)
    newest, page = told(reader, run)
    assert len(newest) == 2
    assert 'tab=facts&amp;before=2"> Earlier facts' in page
    assert 'data-view="facts"' in page
    earlier, page = told(reader, run, "&before=2")
    assert len(earlier) == 2
    assert not set(earlier) & set(newest)
    assert "Earlier facts" not in page
    # What comes is not added to a stretch that ends before it.
    assert 'data-view="head"' in page
    assert 'id="fact-rows"' not in page
    assert told(reader, run, f"&fact={earlier[0]}")[0] == earlier[:1]
    assert told(reader, run, f"&fact={newest[0]}")[0] == [earlier[1], newest[0]]
    assert told(reader, run, "&fact=nothing-like-it")[0] == newest


@proves("R-UI-3", part="a fact says what it is, whether anybody vouches for it, and leads to its evidence")
@pytest.mark.parametrize("trust", ["untrusted", "trusted"])
def test_a_fact_says_its_value_its_trust_and_leads_to_its_call(
    world: World, company: Company, trust: str
) -> None:
    if trust == "untrusted":
        run = refund(world, company, whole=True)
    else:
        run = world.submit("tool-loop", "How much is (12 + 30) * 2?")
        world.drive(run)
    reader, said = at(world.people.auditor), world.said(run, "fact_committed")[0]
    with tenant_transaction(world.id):
        fact = state_now(run).facts[said["fact"]]
    assert fact.trust == said["trust"] == trust
    _, value, _, _, vouched, evidence = cells_of(told(reader, run)[1], said["fact"])
    assert words(vouched) == trust
    assert all(name in words(value) and str(one) in words(value) for name, one in fact.values.items())
    (link,) = re.findall('<a href="([^"]+)">The call</a>', evidence)
    opened = text(reader.get(link))
    assert "Fact committed" in opened
    assert said["fact"] in opened


def cells_of(page: str, fact: str) -> list[str]:
    """The cells of a fact's row, the one of its name first."""
    row = page.partition(f'<tr id="fact-{fact}">')[2].partition("</tr>")[0]
    return re.findall("<t[hd][ >].*?</t[hd]>", row, re.DOTALL)


def words(source: str) -> str:
    """What somebody reads there."""
    return " ".join(re.sub("<[^>]+>", " ", source).split())


def test_a_few_facts_are_all_there(world: World, company: Company) -> None:
    run = refund(world, company, whole=True)
    facts, page = told(at(world.people.auditor), run)
    assert len(facts) == 4
    assert "Earlier facts" not in page


@proves("M15", part="what Interlock quotes of untrusted output is said beside its own words")
def test_words_of_interlock_that_quote_untrusted_facts_say_so(world: World, company: Company) -> None:
    reader, quotes = at(world.people.auditor), "It quotes facts from output that nobody vouches for"
    sums = world.submit("tool-loop", "How much is (12 + 30) * 2?")
    world.drive(sums)
    assert world.said(sums, "fact_committed")[0]["trust"] == "trusted"
    assert quotes not in text(reader.get(f"/runs/{sums}?tab=messages"))
    order = refund(world, company, whole=True)
    assert {fact["trust"] for fact in world.said(order, "fact_committed")} >= {"untrusted"}
    assert quotes in text(reader.get(f"/runs/{order}?tab=messages"))
