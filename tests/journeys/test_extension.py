"""A run out of budget freezes, a reviewer gives more, and it comes to its end (R-BUDGET-6, R-BUDGET-7)."""

from decimal import Decimal
from uuid import UUID

import pytest

from approvals.core.errors import DecisionInvalid, NotYours
from approvals.models import Request
from budgets.actions import change_ceilings
from budgets.core.ceilings import Ceilings
from budgets.core.posting import Cause
from budgets.ledger_verification import verify_ledger
from budgets.queries import get_usage_lines, list_run_entries
from orchestrator import bundled_content
from orchestrator.publishing.actions.versions import publish_boundary
from orchestrator.runs.actions.run_signals import cancel
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Membership
from tests.conftest import House
from tests.doors.api.program import program
from tests.factories.tenancy import make_somebody
from tests.factories.world import World, make_world
from tests.proves import proves

WRONG: tuple[dict[str, str], ...] = (
    {}, {"model_turns": "0"}, {"tool_calls": "3"}, {"model_turns": "1.5"}, {"gold": "1"},
    {"model_turns": "1", "cost_usd": "-1"}, {"model_turns": "1e30"}, {"model_turns": "NaN"},
)  # fmt: skip
SUM = "How much is (12 + 30) * 2?"


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


def frozen(world: World, **budget: str) -> tuple[UUID, Request]:
    """A run that asks for more."""
    run = world.submit("tool-loop", SUM, boundary="asking", budget=budget or {"model_turns": "1"})
    assert world.drive(run).status == "awaiting_gate"
    (request,) = world.open_requests(run)
    assert (request.kind, request.queue) == ("budget", "budget")
    return run, request


@proves("R-BUDGET-7")
@proves("R-APPR-3", part="extend")
@proves("R-BUDGET-3", part="an extension is a row")
def test_an_extended_run_goes_on_to_its_end(world: World) -> None:
    run, request = frozen(world)
    world.decide(request, world.people.approver, "extend", amounts={"model_turns": "5"})
    found = world.drive(run)
    assert (found.status, found.terminal_code) == ("completed", "SUCCESS"), found.reason
    with tenant_transaction(world.id):
        (extended,) = [entry for entry in list_run_entries(run) if entry.cause == Cause.EXTEND]
        line = get_usage_lines(run)["model_turns"]  # type: ignore[index]
        assert verify_ledger(run) == []
    assert extended.limit["model_turns"] == 5
    assert line.limit == 6
    assert line.used <= 6
    (said,) = world.said(run, "budget_extended")
    assert said["amounts"]["model_turns"] == "5"
    assert said["by"] == str(world.people.approver.id)
    assert Decimal(said["amounts"]["transitions"]) > 0
    world.sound(run)


@proves("R-BUDGET-6", part="refused in the inbox")
def test_a_no_ends_it_with_what_it_has(world: World) -> None:
    run, request = frozen(world)
    world.decide(request, world.people.approver, "reject", reason="not worth more")
    found = world.drive(run)
    assert (found.status, found.terminal_code) == ("failed", "BUDGET_EXHAUSTED")
    assert world.result(run)["partial"] is True
    world.sound(run)


@proves("R-BUDGET-7", part="by API")
def test_a_program_extends_and_is_told_what_is_wrong_with_its_amounts(world: World) -> None:
    run, request = frozen(world)
    reviewer = program(world.id, Role.REVIEWER)
    path = f"/approvals/{request.id}/decisions"
    shown = reviewer.get(f"/approvals/{request.id}").json()
    assert shown["packet"]["refused"] == "model_turns"
    assert shown["action"] is None
    for amounts in WRONG:
        answer = reviewer.post(path, {"decision": "extend", "amounts": amounts})
        assert answer.status_code == 422, amounts
    assert reviewer.post(path, {"decision": "approve"}).status_code == 422
    answer = reviewer.post(path, {"decision": "extend", "amounts": {"model_turns": "4"}})
    assert answer.status_code == 200, answer.content
    assert answer.json()["outcome"] == "extend"
    assert world.drive(run).terminal_code == "SUCCESS"


@proves("R-BUDGET-7", part="within the reviewer's authority")
def test_nobody_gives_more_money_than_their_own_authority_reaches(world: World) -> None:
    run, request = frozen(world, cost_usd="0.0001")
    little = make_somebody(world.house.tenant, Role.REVIEWER)
    with tenant_transaction(world.id):
        Membership.objects.filter(person=little.person).update(max_amount=Decimal("0.5"))
    with pytest.raises(NotYours):
        world.decide(request, little, "extend", amounts={"cost_usd": "0.75"})
    world.decide(request, little, "extend", amounts={"cost_usd": "0.25"})
    assert world.drive(run).terminal_code == "SUCCESS"


@proves("R-BUDGET-7", part="within the ceiling as it is when it is given")
def test_a_ceiling_lowered_after_the_grant_holds_and_people_are_asked_again(world: World) -> None:
    run, request = frozen(world, cost_usd="0.0001")
    world.decide(request, world.people.approver, "extend", amounts={"cost_usd": "0.75"})
    lower = Ceilings(per_run_usd=Decimal("0.5"))
    change_ceilings(world.id, lower, by=world.people.admin.id, reason="too much")
    assert world.drive(run).status == "awaiting_gate"
    (again,) = world.open_requests(run)
    assert again.id != request.id
    (refused,) = world.said(run, "decision_refused")
    assert (refused["request"], refused["reason"]) == (str(request.id), "over_ceiling")
    with tenant_transaction(world.id):
        assert get_usage_lines(run)["cost_usd"].limit == Decimal("0.0001")  # type: ignore[index]
    world.decide(again, world.people.approver, "extend", amounts={"cost_usd": "0.25"})
    assert world.drive(run).terminal_code == "SUCCESS"
    world.sound(run)


@proves("R-BUDGET-7", part="what is forbidden stays so")
@proves("R-BUDGET-16", part="no extension lifts a limit of 0")
def test_what_the_boundary_forbids_nobody_gives(world: World) -> None:
    _, request = frozen(world)
    for more in ("1", "1000"):
        given = {"model_turns": "5", "side_effects": more}
        with pytest.raises(DecisionInvalid, match="side_effects is forbidden") as refused:
            world.decide(request, world.people.approver, "extend", amounts=given)
        assert refused.value.data["pointer"] == "/amounts/side_effects"


@proves("R-BUDGET-7", part="only as much again")
def test_nothing_is_given_beyond_as_much_again_as_the_boundary_gave(world: World) -> None:
    run, request = frozen(world)
    for name, most in (("model_turns", 20), ("tool_calls", 20)):
        given = {"model_turns": "5", name: str(most + 1)}
        match = f"{name}: at most as much again .* {most} calls"
        with pytest.raises(DecisionInvalid, match=match) as refused:
            world.decide(request, world.people.approver, "extend", amounts=given)
        assert refused.value.data["pointer"] == f"/amounts/{name}"
    world.decide(request, world.people.approver, "extend", amounts={"model_turns": "20", "tool_calls": "20"})
    assert world.drive(run).terminal_code == "SUCCESS"


@proves("R-BUDGET-7", part="changes by those who may decide on changes")
def test_changes_are_given_only_by_those_whose_limit_reaches_a_change(world: World) -> None:
    run, request = frozen(world)
    reader, writer = (make_somebody(world.house.tenant, Role.REVIEWER) for _ in range(2))
    with tenant_transaction(world.id):
        Membership.objects.filter(person=reader.person).update(max_risk="read_only")
        Membership.objects.filter(person=writer.person).update(max_risk="local_write")
    given = {"model_turns": "5", "granted_side_effects": "1"}
    with pytest.raises(NotYours, match="granted_side_effects is the risk class read_only"):
        world.decide(request, reader, "extend", amounts=given)
    world.decide(request, writer, "extend", amounts=given)
    assert world.drive(run).terminal_code == "SUCCESS"


@proves("R-BUDGET-7", part="all grants together within the reviewer's authority")
def test_many_small_grants_of_money_reach_no_further_than_one(world: World) -> None:
    run, first = frozen(world, cost_usd="0.0001", model_turns="1")
    little = make_somebody(world.house.tenant, Role.REVIEWER)
    with tenant_transaction(world.id):
        Membership.objects.filter(person=little.person).update(max_amount=Decimal("0.03"))
    world.decide(first, little, "extend", amounts={"cost_usd": "0.021"})
    assert world.drive(run).status == "awaiting_gate"
    (second,) = world.open_requests(run)
    more = {"model_turns": "5", "cost_usd": "0.021"}
    with pytest.raises(NotYours, match="cost_usd"):
        world.decide(second, little, "extend", amounts=more)
    world.decide(second, world.people.approver, "extend", amounts={**more, "cost_usd": "0.5"})
    assert world.drive(run).terminal_code == "SUCCESS"


@proves("R-BUDGET-7", part="within the tenant's ceiling")
def test_nobody_gives_a_run_more_than_the_tenants_ceiling(world: World) -> None:
    _, request = frozen(world, cost_usd="0.0001")
    with pytest.raises(DecisionInvalid, match="ceiling"):
        world.decide(request, world.people.approver, "extend", amounts={"cost_usd": "6"})


@proves("R-APPR-5", part="budget is never the submitter's")
def test_the_submitter_gives_themselves_nothing(world: World) -> None:
    _, request = frozen(world)
    with pytest.raises(NotYours):
        world.decide(request, world.people.submitter, "extend", amounts={"model_turns": "5"})


def test_an_extension_after_the_run_was_cancelled_changes_no_ledger(world: World) -> None:
    run, request = frozen(world)
    cancel(world.id, run, by=world.people.operator.id, reason="enough")
    world.decide(request, world.people.approver, "extend", amounts={"model_turns": "5"})
    assert world.drive(run).terminal_code == "USER_CANCEL"
    with tenant_transaction(world.id):
        assert [entry for entry in list_run_entries(run) if entry.cause == Cause.EXTEND] == []
    world.sound(run)
