"""The ready goals of the first page, as a newcomer runs them: what people are asked, and what stands out."""

from typing import Any
from uuid import UUID

import orjson
import pytest
from django.test import Client

from approvals.core.bulk import LOW
from approvals.models import Request
from orchestrator import bundled_content
from orchestrator.bundled_content import Starter
from orchestrator.llm.gateways.providers import scripted_provider
from tests.doors.pages.browsers import browser, words
from tests.doubles.company import Company
from tests.factories.world import World
from tests.proves import proves

ALARM = "Check these values first"
STARTERS = {one.slug: one for one in bundled_content.load_example_goals()}
# The complaint's cause stands in another service than the goal names: that is to be looked at.
UNUSUAL = ("triage-shop",)


def submit_starter(world: World, starter: Starter) -> UUID:
    """Submit a ready goal as the first page does."""
    return world.submit(starter.workflow, starter.goal.objective, inputs=dict(starter.goal.inputs))


def packet_of(request: Request) -> dict[str, Any]:
    """What lies before the reviewer."""
    found: dict[str, Any] = orjson.loads(bytes(request.packet))
    return found


def approve_until_ended(world: World, run: UUID) -> list[Request]:
    """Approve all that a run asks; the requests in their order."""
    asked: list[Request] = []
    while True:
        world.drive(run)
        if not (requests := world.open_requests(run)):
            return asked
        for request in requests:
            world.decide(request, world.people.approver)
            if world.open_requests(run):
                world.decide(request, world.people.second_approver)
        asked.extend(requests)


@proves("R-TOOL-17", part="ordinary values raise no alarm")
@proves("R-UI-10", part="ready goals")
@pytest.mark.parametrize("slug", sorted(set(STARTERS) - set(UNUSUAL)))
def test_card_of_a_ready_goal_states_no_origin_first(world: World, company: Company, slug: str) -> None:
    asked = approve_until_ended(world, submit_starter(world, STARTERS[slug]))
    assert [packet_of(one).get("stated_first", []) for one in asked] == [[]] * len(asked)
    reader = browser(world.people.approver)
    for request in asked:
        page = words(reader.get(f"/approvals/{request.id}"))
        assert ALARM not in page
        assert 'class="doubtful"' not in reader.get(f"/approvals/{request.id}").content.decode()


@proves("R-TOOL-17", part="an ordinary value says so quietly")
def test_card_of_a_refund_says_quietly_that_the_task_names_the_order(world: World, company: Company) -> None:
    run = submit_starter(world, STARTERS["refund-hand-grinder"])
    world.drive(run)
    (request,) = world.open_requests(run)
    assert packet_of(request)["ordinary"] == [
        "/order_id comes from a result that the boundary trusts for it."
    ]
    page = words(browser(world.people.approver).get(f"/approvals/{request.id}"))
    assert "/order_id comes from a result that the boundary trusts for it." in page


@proves("R-TOOL-17", part="the origin stated first on the card")
def test_card_of_a_value_that_nothing_names_states_its_origin_first(world: World, company: Company) -> None:
    run = submit_starter(world, STARTERS["triage-shop"])
    world.drive(run)
    (request,) = world.open_requests(run)
    (stated,) = packet_of(request)["stated_first"]
    assert stated.startswith("/service comes from untrusted output; ")
    reader = browser(world.people.approver)
    page = words(reader.get(f"/approvals/{request.id}"))
    assert page.index(ALARM) < page.index(stated[:40]) < page.index("Exactly this would be sent")
    assert reader.get(f"/approvals/{request.id}").content.decode().count('class="doubtful"') == 1


def refuses_together(reader: Client, requests: list[Request]) -> bool:
    """True where the page says that these may not be decided together."""
    page = reader.get("/approvals/together", {"one": [str(one.id) for one in requests]})
    assert page.status_code == 200
    return "These cannot be decided together." in words(page)


@proves("R-APPR-9", part="what real workflows ask")
@pytest.mark.parametrize("slug", sorted(STARTERS))
def test_requests_of_ready_goals_are_shown_and_decided_together(
    world: World, company: Company, slug: str
) -> None:
    runs = [submit_starter(world, STARTERS[slug]) for _ in range(2)]
    for run in runs:
        world.drive(run)
    asked = [request for run in runs for request in world.open_requests(run)]
    if not asked:
        assert {world.run(run).status for run in runs} <= {"completed", "failed"}
        return
    reader = browser(world.people.approver)
    low = all(one.risk in LOW and not one.has_amount for one in asked)
    assert refuses_together(reader, asked) is not low
    shown = [f"{one.id}:{one.packet_digest}" for one in asked]
    done = reader.post("/approvals/together", {"one": shown, "decision": "approve"})
    assert done.status_code == (200 if low else 422)
    assert [bool(world.open_requests(run)) for run in runs] == [not low] * 2


@proves("R-TOOL-17", part="a draft that quotes an untrusted input states it first")
@pytest.mark.parametrize(
    ("complaint", "drafted"),
    [
        ("Pay me back at https://attacker.example/refunds, please.", "See https://attacker.example/refunds."),
        ("Pay me back: write to eve@attacker.example.", "Answer eve@attacker.example."),
        (
            "The lamp arrived with a broken shade and nobody answers the telephone.",
            "They say: The lamp arrived with a broken shade and nobody answers the telephone.",
        ),
    ],
)
def test_finding_19_a_draft_that_quotes_the_customer_keeps_the_alarm(
    world: World, company: Company, monkeypatch: pytest.MonkeyPatch, complaint: str, drafted: str
) -> None:
    (line,) = (scenario := scripted_provider.load_scenario("support_ticket")).lines
    assert line.reply is not None
    says = line.reply.model_copy(update={"text": drafted})
    played = scenario.model_copy(update={"lines": (line.model_copy(update={"reply": says}),)})
    monkeypatch.setattr(scripted_provider, "load_scenario", lambda *_: played)
    run = world.submit(
        "support-ticket", "Open a ticket for a complaint.",
        inputs={"order_id": "A-1001", "complaint": complaint},
    )  # fmt: skip
    world.drive(run)
    (request,) = world.open_requests(run)
    packet = packet_of(request)
    (stated,) = packet["stated_first"]
    assert stated.startswith("/text is a draft that quotes /complaint, which is untrusted")
    assert not [one for one in packet.get("ordinary", []) if one.startswith("/text")]
    page = browser(world.people.approver).get(f"/approvals/{request.id}")
    assert ALARM in words(page)
    assert page.content.decode().count('class="doubtful"') == 1
