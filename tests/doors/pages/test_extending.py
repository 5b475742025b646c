"""More budget, given from the inbox (R-BUDGET-7)."""

from datetime import timedelta
from uuid import UUID

import pytest

from orchestrator import bundled_content
from orchestrator.publishing.actions.versions import publish_boundary
from tenancy.core.sign_in.rules import Area
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doors.pages.people import at, text
from tests.factories.second_factor import enrol, set_rules, show_factor
from tests.factories.world import World, make_world
from tests.proves import proves


@pytest.fixture
def world(house: House) -> World:
    """A furnished house with a boundary that lets a run ask for more."""
    world = make_world(house)
    with tenant_transaction(world.id):
        asking = bundled_content.get_bundled_boundary("tool-loop-default").evolve(
            slug="asking", on_exhaustion="request"
        )
        publish_boundary(world.id, asking, by=None)
    return world


def frozen(world: World) -> tuple[UUID, str]:
    """A run that asks for more, and the address of its request."""
    run = world.submit(
        "tool-loop", "How much is (12 + 30) * 2?", boundary="asking", budget={"model_turns": 1}
    )
    assert world.drive(run).status == "awaiting_gate"
    (request,) = world.open_requests(run)
    return run, f"/approvals/{request.id}"


@proves("R-BUDGET-7", part="from the inbox")
def test_a_reviewer_sees_the_limits_and_gives_more(world: World) -> None:
    run, where = frozen(world)
    who = at(world.people.approver)
    page = text(who.get(where))
    assert "1 of its 1 model turns" in page
    assert 'name="g-model_turns" value="1"' in page
    assert "at most as much again as the boundary gave the run" in page
    assert "g-side_effects" not in page
    assert "Its budget is used up" in text(who.get(f"/runs/{run}"))
    digest = world.open_requests(run)[0].packet_digest
    more = {"decision": "extend", "digest": digest}
    refused = who.post(where, more | {"g-model_turns": "none"})
    assert refused.status_code == 422
    assert 'value="none"' in text(refused)
    given = who.post(where, more | {"g-model_turns": "4", "g-tool_calls": ""})
    assert given.status_code == 302, text(given)
    assert world.drive(run).terminal_code == "SUCCESS"
    assert "extended the budget" in text(who.get(where))


@proves("R-SEC-11", part="more budget is given with the second factor asked for again")
def test_giving_a_run_more_asks_for_the_second_factor_where_the_tenant_says_so(world: World) -> None:
    run, where = frozen(world)
    set_rules(world.id, areas=[Area.MONEY])
    who = at(world.people.approver)
    factor = enrol(world.people.approver.person)
    show_factor(who, factor, ago=timedelta(hours=1))
    digest = world.open_requests(run)[0].packet_digest
    more = {"decision": "extend", "digest": digest, "g-model_turns": "4"}
    asked = who.post(where, more)
    assert asked.status_code == 403
    assert 'name="g-model_turns" value="4"' in text(asked)
    show_factor(who, factor)
    assert who.post(where, more).status_code == 302
    assert world.open_requests(run) == []


@proves("R-BUDGET-7", part="not from one's own inbox")
def test_the_submitter_has_no_button(world: World) -> None:
    _, where = frozen(world)
    assert "g-model_turns" not in text(at(world.people.submitter).get(where))
