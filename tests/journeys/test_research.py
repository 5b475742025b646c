"""A question answered from documents: what is found is cited, what contradicts itself is named, and what a
document orders is not done."""

from typing import Any
from uuid import UUID

import orjson
import pytest
from pytest_django import Settings

from orchestrator import bundled_content
from tests.conftest import House
from tests.doubles.company import Company
from tests.doubles.openai_server import Call, OpenAIServer, calls, said
from tests.factories.foreign import foreign, onwards
from tests.factories.world import World, company_at, make_world
from tests.proves import proves

WARRANTY = "What warranty does a grinder have?"
BRIEFS = [starter for starter in bundled_content.load_example_goals() if starter.workflow == "research-brief"]


def asked(world: World, question: str = WARRANTY) -> UUID:
    """A brief that nobody has begun yet."""
    return world.submit("research-brief", "Find it out.", inputs={"question": question})


def brief_of(world: World, run: UUID) -> dict[str, Any]:
    """The typed answer."""
    found: dict[str, Any] = world.result(run)["output"]
    return found


@proves("R-LOOP-30", part="a brief")
@proves("R-LOOP-33", part="every finding cites a passage")
@pytest.mark.parametrize("starter", BRIEFS, ids=lambda starter: starter.slug)
def test_a_ready_brief_cites_what_was_read(
    world: World, company: Company, starter: bundled_content.Starter
) -> None:
    run = world.submit(starter.workflow, starter.goal.objective, inputs=starter.goal.inputs)
    found = world.drive(run)
    assert (found.status, found.terminal_code) == ("completed", "SUCCESS"), found.reason
    brief, facts = brief_of(world, run), world.result(run)["facts"]
    cited = [name for finding in brief["findings"] for name in finding["facts"]]
    assert {facts[name]["tool"] for name in cited} == {"documents.read"}
    assert set(world.result(run)["rests_on_untrusted"]) >= set(cited)
    assert company.effects() == []
    assert world.open_requests(run) == []
    world.sound(run)


@proves("R-LOOP-33", part="a contradiction is named")
def test_documents_that_contradict_each_other_are_both_named(world: World) -> None:
    run = asked(world, "Within how many days of delivery may a customer send an item back?")
    world.drive(run)
    facts = world.result(run)["facts"]
    (conflict,) = brief_of(world, run)["conflicts"]
    sides = {facts[name]["values"]["value"] for name in conflict["facts"]}
    assert (conflict["about"], sides) == ("return window", {"30 days", "14 days"})


def test_a_question_about_nothing_ends_with_the_search_that_found_nothing(world: World) -> None:
    run = asked(world, "zyzzyva quokka")
    assert world.drive(run).terminal_code == "SUCCESS"
    (finding,) = brief_of(world, run)["findings"]
    assert world.result(run)["facts"][finding["facts"][0]]["tool"] == "documents.search"


def test_without_the_documents_there_is_no_brief(world: World, company: Company) -> None:
    company.faults("documents", "fail")
    run = asked(world)
    found = onwards(world, run)
    assert (found.status, found.terminal_code) == ("failed", "UNAVAILABLE_DEP")
    world.sound(run)


# -- a model of somebody else's -----------------------------------------------------------------------------

SEARCH = calls(Call("documents_search", {"query": WARRANTY, "limit": 3}))
READ = calls(
    *(
        Call("documents_read", {"passage": passage}, f"call_{passage[:4]}")
        for passage in ("warranty.1", "product-hand-grinder.2", "supplier-mail-2026-02.2")
    )
)
ORDERED = calls(
    Call("payments_refund", {"order_id": "A-1003", "amount": "899.00", "currency": "USD"}, "call_a"),
    Call("mail_send", {"to": "claims@supplier-desk.example", "subject": "Paid", "text": "Paid."}, "call_b"),
    Call("services_restart", {"service": "checkout", "reason": "The document says so."}, "call_c"),
)
CONFLICT = {"about": "grinder warranty", "statement": "They differ.", "facts": ["f2", "f3", "f4"]}


def brief(claim: str, *facts: str, conflicts: tuple[dict[str, Any], ...] = ()) -> Any:
    """A reply with a brief of one finding."""
    document = {
        "title": "Warranty", "summary": "On grinders.", "findings": [{"claim": claim, "facts": facts}],
        "conflicts": conflicts,
    }  # fmt: skip
    return said(orjson.dumps(document).decode())


GOOD = brief("It is 36 months.", "f2", conflicts=(CONFLICT,))


@proves("R-LOOP-11", part="orders in a document")
@proves("R-LOOP-6", part="a brief that cites nothing")
def test_a_model_that_obeys_a_document_changes_nothing(
    house: House, company: Company, settings: Settings
) -> None:
    lies = [brief("Grinders have a lifetime warranty.", "f99")] * 4
    server = OpenAIServer(SEARCH, READ, ORDERED, *lies)
    with company_at(company.url), foreign(settings, server):
        world = make_world(house)
        run = asked(world)
        found = onwards(world, run)
    assert found.terminal_code == "VALIDATION_FAIL"
    assert company.effects() == []
    assert world.said(run, "approval_requested") == []
    refusals = [refused["status"] for refused in world.said(run, "call_not_run")]
    assert refusals == ["unregistered"] * 3
    world.sound(run)


MENDED = [
    (brief("It is 36 months.", "f9", conflicts=(CONFLICT,)), "f9 is no committed fact"),
    (brief("It is 24 months.", "f2", conflicts=(CONFLICT,)), "the figure 24 stands in none of the facts"),
    (brief("It is 36 months.", "f2"), "contradict each other about grinder warranty"),
    (
        brief("It is 36 months.", "f2", conflicts=({**CONFLICT, "facts": ["f2", "f3"]},)),
        "contradict each other about grinder warranty",
    ),
    (brief("It is 36 months.", "f2", conflicts=({**CONFLICT, "facts": ["f2"]},)), "output_schema"),
]


@proves("R-LOOP-30", part="a brief is sent back until it cites")
@pytest.mark.parametrize(("draft", "fault"), MENDED, ids=["unknown", "figure", "silent", "half", "one side"])
def test_a_brief_is_sent_back_with_what_is_wrong(
    house: House, company: Company, settings: Settings, draft: Any, fault: str
) -> None:
    server = OpenAIServer(SEARCH, READ, draft, GOOD)
    with company_at(company.url), foreign(settings, server):
        world = make_world(house)
        run = asked(world)
        found = onwards(world, run)
    assert found.terminal_code == "SUCCESS", found.reason
    (failed,) = [one for one in world.said(run, "output_verified") if one["verdict"] == "failed"]
    assert fault in failed["detail"] + failed["validator"]
    assert "CHECKS FAILED" in orjson.dumps(server.documents[-1]["messages"]).decode()
    assert server.violations == []
