"""Budgets for programs: what is spent, what may come in, and what a ceiling or a limit answers."""

from decimal import Decimal

import pytest

from budgets.actions import change_ceilings, change_rates
from budgets.core.ceilings import Ceilings
from budgets.core.rates import Rates
from budgets.queries import get_usage_lines
from orchestrator.core.tools.tool_update import asked_change
from orchestrator.tools.actions.tool_updates import change_tool
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doors.api.program import program, refusal
from tests.factories.tenancy import make_somebody
from tests.factories.world import World, make_world
from tests.proves import proves

SUM = "How much is (12 + 30) * 2?"
TASK = {"workflow": "tool-loop", "goal": {"objective": SUM}}


@pytest.fixture
def world(house: House) -> World:
    """A house in which the calculator costs something."""
    made = make_world(house)
    change_tool(made.id, "calculator.evaluate", asked_change({"price_usd": "0.2"}), by=None, reason="")
    return made


@proves("R-BUDGET-14", part="for programs")
def test_the_api_tells_what_the_page_tells(world: World) -> None:
    run = world.submit("tool-loop", SUM)
    world.drive(run)
    change_ceilings(world.id, Ceilings(daily_usd=Decimal("0.5")), by=None, reason="tight")
    reader = program(world.id, Role.AUDITOR)
    said = reader.get("/budgets").json()
    with tenant_transaction(world.id):
        cost = next(line.used for name, line in get_usage_lines(run).items() if name == "cost_usd")
    assert Decimal(said["day"]["spent_usd"]) == cost
    assert [one["name"] for one in said["by_workflow"]] == ["tool-loop"]
    assert sum(Decimal(one["spent_usd"]) for one in (*said["by_model"], *said["by_tool"])) == cost
    assert Decimal(said["days"][-1]["spent_usd"]) == cost
    assert [(one["window"], one["threshold"]) for one in said["alerts"]] == [("day", 80)]
    figures = reader.get("/budgets/figures").json()
    assert figures["workflow"] == "tool-loop"
    assert {one["metric"]: one["runs"] for one in figures["spreads"]}["cost"] == 1
    assert reader.get("/budgets/figures?workflow=none").json()["spreads"] == []


@proves("R-BUDGET-10", part="429 at the ceiling")
@proves("B6")
def test_at_the_ceiling_a_task_is_answered_429_with_the_time_to_come_back(world: World) -> None:
    run = world.submit("tool-loop", SUM)
    world.drive(run)
    with tenant_transaction(world.id):
        cost = next(line.used for name, line in get_usage_lines(run).items() if name == "cost_usd")
    change_ceilings(world.id, Ceilings(daily_usd=cost), by=None, reason="tight")
    client = program(world.id, Role.CLIENT)
    answer = client.post("/tasks", TASK)
    assert answer.status_code == 429
    assert answer["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"] == "urn:interlock:problem:ceiling-reached"
    assert problem["data"]["window"] == "daily"
    assert 1 <= int(answer["Retry-After"]) <= 25 * 3600
    change_ceilings(world.id, Ceilings(daily_usd=cost * 3), by=None, reason="more")
    assert client.post("/tasks", TASK).status_code == 202


@proves("R-BUDGET-10", part="429 where too little is left to begin with")
def test_a_task_that_the_window_cannot_bear_is_answered_429_with_what_it_wants(world: World) -> None:
    change_ceilings(world.id, Ceilings(daily_usd=Decimal("0.000001")), by=None, reason="tight")
    answer = program(world.id, Role.CLIENT).post("/tasks", TASK)
    assert (answer.status_code, answer["Content-Type"]) == (429, "application/problem+json")
    problem = answer.json()
    assert problem["type"] == "urn:interlock:problem:ceiling-too-near"
    assert (problem["data"]["window"], problem["data"]["left"]) == ("daily", "0.000001")
    assert Decimal(problem["data"]["wanted"]) > Decimal(problem["data"]["left"])
    assert 1 <= int(answer["Retry-After"]) <= 25 * 3600


@proves("R-BUDGET-11", part="429 beyond a rate")
def test_beyond_a_limit_a_task_is_answered_429_and_the_limit_is_named(world: World) -> None:
    change_rates(world.id, Rates(queue_depth=1), by=None, reason="calm")
    client = program(world.id, Role.CLIENT)
    assert client.post("/tasks", TASK).status_code == 202
    answer = client.post("/tasks", TASK)
    assert answer.status_code == 429
    problem = answer.json()
    assert (problem["code"], problem["data"]["which"]) == ("rate-reached", "queue_depth")
    assert "1 runs waiting for a worker of the tenant" in problem["detail"]
    assert int(answer["Retry-After"]) >= 1


@proves("R-BUDGET-11", part="for programs")
def test_limits_are_read_and_set_by_an_admin_with_a_tag(world: World) -> None:
    admin, reader = program(world.id, Role.ADMIN), program(world.id, Role.AUDITOR)
    first = reader.get("/rates")
    wanted = {**first.json(), "queue_depth": 7, "key_queue_depth": None, "reason": "calm"}
    assert reader.send("put", "/rates", wanted).status_code == 403
    assert admin.send("put", "/rates", {**wanted, "queue_depth": 0}).status_code == 400
    assert admin.send("put", "/rates", {"queue_depth": 1}).status_code == 400
    answer = admin.send("put", "/rates", wanted)
    assert (answer.status_code, answer.json()["queue_depth"]) == (200, 7)
    assert answer["ETag"] != first["ETag"]
    assert reader.get("/rates").json()["key_queue_depth"] is None


BLANK = ("", " ", "\n", "\t", "\u00a0")


@proves("R-BUDGET-9", part="only null is no ceiling")
@pytest.mark.parametrize("blank", BLANK)
@pytest.mark.parametrize("field", ["per_run_usd", "daily_usd", "monthly_usd"])
def test_a_blank_ceiling_is_refused_and_removes_nothing(house: House, field: str, blank: str) -> None:
    admin = program(house.tenant.id, Role.ADMIN)
    before = admin.get("/ceilings").json()
    amounts = {name: before[name] for name in ("per_run_usd", "daily_usd", "monthly_usd")}
    answer = admin.send("put", "/ceilings", {**amounts, field: blank, "reason": "A slip"})
    assert answer.status_code == 400
    assert [error["pointer"] for error in answer.json()["errors"]] == [f"/{field}"]
    assert admin.get("/ceilings").json() == before


@proves("R-BUDGET-15", part="a blank amount is no amount")
@pytest.mark.parametrize("blank", BLANK)
@pytest.mark.parametrize("field", ["cache_read_usd_per_mtok", "cache_write_usd_per_mtok", "request_usd"])
def test_a_blank_price_is_refused_where_null_is_none(house: House, field: str, blank: str) -> None:
    price = {
        "provider": "openai", "model": "house-model", "input_usd_per_mtok": "1", "output_usd_per_mtok": "2",
        "reason": "Ours",
    }  # fmt: skip
    answer = program(house.tenant.id, Role.ADMIN).post("/prices", {**price, field: blank})
    assert answer.status_code == 400
    assert [error["pointer"] for error in answer.json()["errors"]] == [f"/{field}"]


@proves("R-BUDGET-9", part="a raised ceiling waits, for programs")
def test_a_raised_ceiling_is_answered_202_until_another_administrator_agrees(house: House) -> None:
    owner = make_somebody(house.tenant, Role.ADMIN).person
    admin, second = (
        program(house.tenant.id, Role.ADMIN, owner=one) for one in (house.people.admin.person, owner)
    )
    amounts = {"per_run_usd": "5", "daily_usd": None, "monthly_usd": "1000"}
    assert admin.send("put", "/ceilings", {**amounts, "daily_usd": "99"}).status_code == 200
    asked = admin.send("put", "/ceilings", {**amounts, "reason": "A launch"})
    assert (asked.status_code, asked.json()["kind"]) == (202, "ceilings")
    assert admin.get("/ceilings").json()["daily_usd"] == "99"
    agree = f"/tool-proposals/{asked.json()['id']}/agree"
    assert refusal(admin.post(agree, {"reason": "Mine"})) == (403, "own-proposal")
    agreed = second.post(agree, {"reason": "Yes"})
    assert (agreed.status_code, agreed.json()["daily_usd"]) == (200, None)
