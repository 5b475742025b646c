"""Submitting by a form made from the workflow's schema (R-UI-10)."""

from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
import pytest

from budgets.actions import change_ceilings
from budgets.core.ceilings import Ceilings
from orchestrator.bundled_content import load_example_goals
from orchestrator.runs.models.run import Run
from orchestrator.runs.models.task import Task
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.doors.pages.people import HOSTILE, at, refund, text
from tests.doors.pages.people import world as world
from tests.doubles.company import Company
from tests.factories.world import World, company_at
from tests.proves import proves


def form(**more: Any) -> dict[str, Any]:
    return {
        "key": str(fresh_id()), "objective": "Refund order A-1001", "f:/order_id": "A-1001", "f:/amount": "",
        "f:/reason": "", **more,
    }  # fmt: skip


def tasks(world: World) -> list[dict[str, Any]]:
    with tenant_transaction(world.id):
        return [orjson.loads(bytes(task.goal)) for task in Task.objects.order_by("created_at")]


@proves("R-UI-10", part="form")
def test_the_form_is_made_from_the_workflows_schema(world: World) -> None:
    page = text(at(world.people.operator).get("/new/support-refund"))
    assert 'name="f:/order_id"' in page
    assert "The order to refund, as it stands on the delivery note." in page
    assert "At most 1: boundary refund v1" in page
    assert "$INTERLOCK_KEY" in page


@proves("R-UI-10", part="submitting")
def test_a_form_that_is_sent_submits_the_task_and_shows_its_run(world: World) -> None:
    sent = form(**{"f:/reason": "It arrived damaged.", "limit:cost_usd": "0.25", "limit:tool_calls": "20"})
    answer = at(world.people.operator).post("/new/support-refund", sent)
    with tenant_transaction(world.id):
        run = Run.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/runs/{run.id}")
    assert run.submitted_by == world.people.operator.id
    (goal,) = tasks(world)
    assert goal["inputs"] == {"order_id": "A-1001", "reason": "It arrived damaged."}


@proves("R-BUDGET-10", part="too little left, on the page")
def test_a_task_that_the_window_cannot_bear_is_told_so_with_the_time_to_come_back(world: World) -> None:
    change_ceilings(world.id, Ceilings(daily_usd=Decimal("0.000001")), by=None, reason="tight")
    answer = at(world.people.operator).post("/new/support-refund", form())
    assert (answer.status_code, tasks(world)) == (429, [])
    assert 1 <= int(answer["Retry-After"]) <= 25 * 3600
    page = text(answer)
    assert "ceiling of 0.000001 US$ leaves 0.000001 US$" in page
    assert 'value="A-1001"' in page


def test_a_double_click_submits_once(world: World) -> None:
    who, sent = at(world.people.operator), form()
    first, second = who.post("/new/support-refund", sent), who.post("/new/support-refund", sent)
    assert first["Location"] == second["Location"]
    assert len(tasks(world)) == 1


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"objective": " "}, "Say what is to be reached."),
        ({"f:/order_id": ""}, "A value is needed here."),
        ({"f:/amount": "ten"}, "does not match"),
        ({"limit:cost_usd": "2"}, "At most 1, says boundary refund v1."),
        ({"limit:tool_calls": "many"}, "A number is needed, such as 12."),
        ({"deadline": "soon"}, "This is no date with a time."),
        ({"deadline": "2001-01-01T00:00"}, "the deadline has passed"),
    ],
)
@proves("R-UI-11", part="errors at the field")
def test_what_is_wrong_is_said_at_its_field_and_nothing_typed_is_lost(
    world: World, sent: dict[str, str], said: str
) -> None:
    answer = at(world.people.operator).post(
        "/new/support-refund", form(**{"f:/reason": "kept as typed", **sent})
    )
    page = text(answer)
    assert answer.status_code == 422
    assert said in page
    assert "kept as typed" in page
    assert 'aria-invalid="true"' in page
    assert tasks(world) == []


def test_a_preview_shows_the_command_and_submits_nothing(world: World) -> None:
    page = text(at(world.people.operator).post("/new/support-refund", form(preview="1")))
    assert "&quot;order_id&quot;: &quot;A-1001&quot;" in page
    assert tasks(world) == []


@proves("R-UI-10", part="starters")
def test_a_ready_goal_starts_with_one_click(world: World) -> None:
    who = at(world.people.operator)
    page = text(who.get("/"))
    assert "Nothing was run here yet" in page
    assert "Refund a hand grinder" in page
    answer = who.post("/new/support-refund", {"starter": "refund-hand-grinder", "key": str(fresh_id())})
    assert answer.status_code == 302
    assert tasks(world)[0]["inputs"]["order_id"] == "A-1001"
    assert "Nothing was run here yet" not in text(who.get("/"))


def test_every_shipped_workflow_has_its_form(world: World) -> None:
    who = at(world.people.operator)
    page = text(who.get("/new"))
    for slug in ("support-refund", "tool-loop", "research-brief", "incident-triage"):
        assert f"/new/{slug}" in page
        assert who.get(f"/new/{slug}").status_code == 200


def test_hostile_words_come_back_as_words(world: World) -> None:
    page = text(at(world.people.operator).post("/new/support-refund", form(objective=HOSTILE, deadline="x")))
    assert "<script>alert" not in page


def test_only_who_may_submit_is_let_in(world: World) -> None:
    for who in (world.people.auditor, world.people.approver):
        assert at(who).get("/new").status_code == 403
        assert at(who).post("/new/support-refund", form()).status_code == 403
    assert at(world.people.operator).get("/new/nobodys").status_code == 404
    assert tasks(world) == []


@proves("R-UI-10", part="submitting again")
def test_submitting_again_begins_with_the_runs_own_task(world: World) -> None:
    run = world.submit(
        "support-refund", "Refund the broken one", inputs={"order_id": "A-1003", "reason": HOSTILE[:8]},
        constraints=["Be kind."],
    )  # fmt: skip
    who = at(world.people.operator)
    page = text(who.get("/new/support-refund", {"from": str(run)}))
    assert "A copy of the task of" in page
    assert "Refund the broken one</textarea>" in page
    assert 'value="A-1003"' in page
    assert "copied too: constraints" in page
    assert f'name="from" value="{run}"' in page
    answer = who.post("/new/support-refund", form(**{"from": run, "objective": "Refund it now"}))
    assert answer.status_code == 302
    first, again = tasks(world)
    assert again == {**first, "objective": "Refund it now", "inputs": {"order_id": "A-1001"}}


def test_only_a_run_of_ones_own_tenant_and_of_this_workflow_is_copied(world: World) -> None:
    run = world.submit("tool-loop", "Another workflow")
    who = at(world.people.operator)
    for given in (run, fresh_id(), "nonsense"):
        assert who.get("/new/support-refund", {"from": str(given)}).status_code == 404
    assert at(world.people.stranger).get("/new/tool-loop", {"from": str(run)}).status_code in (403, 404)


@proves("R-UI-11", part="what is wrong stands on top of the form and leads to its fields")
def test_what_is_wrong_is_said_once_on_top_with_the_way_to_its_field(world: World) -> None:
    sent = form(**{"objective": " ", "f:/order_id": "", "limit:cost_usd": "much", "deadline": "soon"})
    answer = at(world.people.operator).post("/new/support-refund", sent)
    page = text(answer)
    assert answer.status_code == 422
    assert page.count("data-errors") == 1
    summary = page.split("data-errors")[1].split("</ul>")[0]
    links = [part.split('"')[0] for part in summary.split('href="#')[1:]]
    assert links == ["objective", "field-f_3a_2forder_5fid", "limit-cost_usd", "deadline"]
    for link in links:
        assert f'id="{link}"' in page
    assert page.index("data-errors") < page.index("data-guard")


@proves("R-UI-10", part="ready goals that work more than once")
def test_a_ready_goal_takes_what_no_run_was_about(world: World, company: Company) -> None:
    ready = next(one for one in load_example_goals() if one.slug == "refund-hand-grinder")
    who = at(world.people.operator)
    chosen = []
    with company_at(company.url):
        for _ in range(2):
            sent = {"starter": ready.slug, "key": str(fresh_id())}
            run = UUID(who.post("/new/support-refund", sent)["Location"].rpartition("/")[2])
            world.approve_all(run)
            assert world.run(run).terminal_code == "SUCCESS"
            chosen.append(world.run(run).title)
    assert chosen == [goal.objective for goal in ready.goals()[:2]]
    for goal in ready.goals()[2:]:
        assert "asked for already" not in text(who.get("/new"))
        world.submit("support-refund", goal.objective, inputs=goal.inputs)
    page = text(who.get("/new"))
    assert "The policy refunds an order once, so nothing would be paid again." in page
    assert "Run it all the same: Refund a hand grinder" in page


@proves("R-UI-3", part="an ended run says why in plain words")
def test_a_refund_that_the_policy_forbids_says_why(world: World, company: Company) -> None:
    run = refund(world, company, order_id="A-1007", whole=True)
    page = text(at(world.people.operator).get(f"/runs/{run}"))
    standing = page.split('id="run-standing"')[1].split("</section>")[0]
    assert "Not refundable." in standing
    assert "58.50 USD were refunded already." in standing
    assert "policy.evaluate" in standing
    assert f"/new/support-refund?from={run}" in standing
    assert "not_refundable" not in standing


def test_a_call_that_waits_for_a_yes_says_so_in_plain_words(world: World, company: Company) -> None:
    page = text(at(world.people.operator).get(f"/runs/{refund(world, company)}"))
    assert "no_grant" not in page.split('id="timeline-rows"')[1].split("</ol>")[0]
