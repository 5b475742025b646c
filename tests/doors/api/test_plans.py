"""The plan of a run by the API: its steps with what each waits for, and its criteria."""

from uuid import UUID

from pytest_django import Settings

from orchestrator.runs.actions.run_signals import cancel
from tests.doors.api.program import Program, refusal
from tests.doors.pages.people import refund
from tests.doubles.company import Company
from tests.factories.foreign import REFUND_AND_LOOK_UPS, Obedient, foreign, onwards
from tests.factories.retrying import checkpoints, retried
from tests.factories.world import World, company_at
from tests.proves import proves

ACCEPTANCE = [{"validator": "contains", "parameters": {"text": "2"}}]
GOAL = {"objective": "How much is 1 + 1?", "acceptance": ACCEPTANCE}


@proves("R-UI-3", part="plan with dependency state")
def test_a_refund_at_its_gate_says_what_waits_for_what(
    world: World, company: Company, auditor: Program
) -> None:
    run = refund(world, company)
    said = auditor.get(f"/runs/{run}").json()["links"]["plan"].removeprefix("/api/v1")
    found = auditor.get(said).json()
    (asked,) = world.open_requests(run)
    assert not found["over"]
    assert [(one["id"], one["standing"], one["after"]) for one in found["steps"]] == [
        ("node-lookup", "done", []), ("node-evaluate", "done", []), ("node-refund", "waiting", []),
        ("node-draft", "ahead", ["node-refund"]), ("node-send", "ahead", ["node-draft"]),
    ]  # fmt: skip
    waiting = found["steps"][2]
    assert waiting["wait"]["what"] == "decision"
    assert waiting["wait"]["request"] == str(asked.id)
    assert waiting["wait"]["until"]
    events = auditor.get(f"/runs/{run}/events").json()["results"]
    (requested,) = [
        one["seq"]
        for one in events
        if one["kind"] == "call_requested" and one["payload"]["call"] == waiting["call"]
    ]
    assert waiting["event"] == requested
    assert {(one["parameters"]["fact"], one["met"]) for one in found["criteria"]} == {
        ("order", "met"), ("policy", "met"), ("refund", "unmet"), ("mail", "unmet"),
    }  # fmt: skip


def test_an_ended_run_has_nothing_before_it(world: World, company: Company, auditor: Program) -> None:
    run = refund(world, company)
    with company_at(company.url):
        world.approve_all(run)
    found = auditor.get(f"/runs/{run}/plan").json()
    assert found["over"]
    assert {one["standing"] for one in found["steps"]} == {"done"}
    assert {one["wait"] for one in found["steps"]} == {None}


@proves("R-UI-3", part="plan with dependency state")
def test_a_retry_has_done_what_was_done_before_it(world: World, company: Company, auditor: Program) -> None:
    before = refund(world, company)
    cancel(world.id, before, by=world.people.operator.id, reason="Not now.")
    world.drive(before)
    run = retried(world, before)
    with company_at(company.url):
        world.drive(run)
    steps = auditor.get(f"/runs/{run}/plan").json()["steps"]
    assert [(one["id"], one["standing"], one["fact"]) for one in steps] == [
        ("node-lookup", "done", "order"), ("node-evaluate", "done", "policy"),
        ("node-refund", "waiting", None), ("node-draft", "ahead", None), ("node-send", "ahead", None),
    ]  # fmt: skip
    # Its calls were another run's: no event of this one has them.
    assert [one["event"] is None for one in steps[:2]] == [True, True]


@proves("R-UI-3", part="plan with dependency state")
def test_a_queued_retry_that_begins_at_a_fixed_call_takes_it_up_next(
    world: World, company: Company, auditor: Program
) -> None:
    before = refund(world, company)
    cancel(world.id, before, by=world.people.operator.id, reason="Not now.")
    world.drive(before)
    (record,) = [one.record for one in checkpoints(world, before) if one.position == "refund"]
    run = retried(world, before, record=record)
    steps = auditor.get(f"/runs/{run}/plan").json()["steps"]
    assert [(one["id"], one["standing"], one["after"]) for one in steps] == [
        ("node-lookup", "done", []), ("node-evaluate", "done", []), ("node-refund", "ready", []),
        ("node-draft", "ahead", ["node-refund"]), ("node-send", "ahead", ["node-draft"]),
    ]  # fmt: skip


@proves("R-UI-3", part="plan with dependency state")
def test_calls_that_a_retry_began_with_are_left_out_where_it_is_cut_off(
    world: World, company: Company, settings: Settings, auditor: Program
) -> None:
    with foreign(settings, Obedient(*REFUND_AND_LOOK_UPS)), company_at(company.url):
        before = world.submit("tool-loop", "Refund order A-1001: 10.00 EUR, broken.")
        onwards(world, before)
        cancel(world.id, before, by=world.people.operator.id, reason="Not now.")
        world.drive(before)
        run = retried(world, before)
    cancel(world.id, run, by=world.people.operator.id, reason="Not at all.")
    world.drive(run)
    for one in (before, run):
        steps = auditor.get(f"/runs/{one}/plan").json()["steps"]
        assert [(step["name"], step["standing"]) for step in steps if step["call"]] == [
            (name, "left_out") for name in ("payments.refund", "orders.lookup", "orders.lookup")
        ]


def test_a_criterion_nobody_looked_at_is_open_and_an_answer_that_passed_met_it(
    world: World, client_program: Program, auditor: Program
) -> None:
    said = client_program.post("/tasks", {"workflow": "tool-loop", "goal": GOAL}).json()
    run = UUID(said["run"]["id"])
    assert [one["met"] for one in auditor.get(f"/runs/{run}/plan").json()["criteria"]] == ["open"]
    world.drive(run)
    assert [one["met"] for one in auditor.get(f"/runs/{run}/plan").json()["criteria"]] == ["met"]


def test_a_run_that_is_not_there_has_no_plan(auditor: Program) -> None:
    assert refusal(auditor.get("/runs/no-such-run/plan"))[0] == 404
