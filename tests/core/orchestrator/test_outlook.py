"""What comes next in a run and what each thing waits for, in the shipped workflows (R-UI-3)."""

from typing import Any

import pytest

from orchestrator import bundled_content
from orchestrator.core.common.goal import Criterion, Goal
from orchestrator.core.compiler.compiler import compile_graph
from orchestrator.core.domain.run_events import (
    CancelAsked,
    GateDecided,
    GateExpired,
    Headroom,
    Paused,
    Recovered,
    ToolFailed,
)
from orchestrator.core.domain.tool_spec import Reversibility, Risk, ToolSpec, Verifier
from orchestrator.core.readmodel.run_plan import CriterionState, PlanStep, StepStanding, select_step_window
from tests.core.orchestrator.deeds import run_with
from tests.core.orchestrator.loops import BOUNDARY, LIMITS, TOOLS, loop
from tests.core.orchestrator.outlooks import plan, shown, step
from tests.core.orchestrator.simulation import NIL, Simulation, manifest, pins
from tests.factories.graphs import compiled, document
from tests.factories.tools import BOUNDARY as LADDER_BOUNDARY
from tests.factories.tools import PROMPT
from tests.factories.tools import TOOLS as LADDER
from tests.proves import proves

LOOKUP = ("orders.lookup", {"id": "A-1"})
OTHER = ("orders.lookup", {"id": "A-2"})
REFUND = ("payments.refund", {"amount": "20.00", "id": "A-1"})


def shop(name: str, risk: Risk, *facts: str) -> ToolSpec:
    read = risk is Risk.READ_ONLY
    return ToolSpec(
        name=name, version=1, description=name, category="shop", capability=name,
        input_schema={"type": "object"}, output_schema={"type": "object"}, risk=risk,
        reversibility=Reversibility.PURE if read else Reversibility.IRREVERSIBLE,
        verifier=Verifier(name="schema"), facts={fact: f"/{fact}" for fact in facts},
    )  # fmt: skip


SHOP = {
    tool.name: tool
    for tool in (
        shop("orders.lookup", Risk.READ_ONLY, "id", "total"),
        shop("policy.evaluate", Risk.READ_ONLY, "refundable", "max_amount"),
        shop("payments.refund", Risk.DESTRUCTIVE, "id", "amount"),
        shop("mail.send", Risk.NETWORK, "id"),
    )
}
ORDER = {"id": "A-1", "total": "20.00", "currency": "EUR", "customer": {"email": "a@example.com"}}


def refund(*acceptance: Criterion) -> Simulation:
    """A started run of the refund that waits for its first look-up."""
    graph = compile_graph(bundled_content.get_bundled_workflow("support-refund"))
    held = pins(
        SHOP, bundled_content.get_bundled_boundary("support"), tuple(bundled_content.load_bundled_prompts())
    )
    goal = Goal(objective="refund it", inputs={"order_id": "A-1"}, acceptance=acceptance)
    run = Simulation.of(graph, manifest(graph, held, LIMITS | {"granted_side_effects": 4}, goal))
    run.start()
    return run


def at_the_gate(*acceptance: Criterion, refundable: bool = True) -> Simulation:
    """One whose refund waits for people."""
    run = refund(*acceptance)
    run.answer(ORDER)
    run.answer({"refundable": refundable, "max_amount": "20.00"})
    return run


def decide(run: Simulation, word: str, **more: Any) -> None:
    """Answer the open request."""
    (asked,) = run.requests
    run.feed(
        GateDecided(
            at=run.now, request=str(asked.request), decision=word, decision_digest=NIL, by="somebody",
            role="reviewer", packet_digest=asked.packet_digest, **more,
        )
    )  # fmt: skip


@proves("R-UI-3", part="plan with dependency state")
def test_a_refund_at_its_gate_shows_what_is_done_who_is_awaited_and_what_comes_after() -> None:
    run = at_the_gate()
    found = plan(run)
    assert shown(found) == [
        ("orders.lookup", "done"), ("policy.evaluate", "done"), ("payments.refund", "waiting"),
        ("draft", "ahead"), ("mail.send", "ahead"),
    ]  # fmt: skip
    waiting = step(found, "payments.refund")
    (asked,) = run.requests
    assert waiting.wait is not None
    assert (waiting.wait.what, waiting.wait.request) == ("decision", str(asked.request))
    assert waiting.wait.until == asked.expires_at
    assert step(found, "draft").after == ("node-refund",)
    assert step(found, "mail.send").after == ("node-draft",)
    assert step(found, "mail.send").gated
    assert (step(found, "orders.lookup").fact, step(found, "orders.lookup").call) == ("order", "c1")


def test_before_its_first_answer_a_refund_has_the_whole_chain_before_it() -> None:
    found = plan(refund())
    assert [standing for _, standing in shown(found)] == ["under_way", "ahead", "ahead", "ahead", "ahead"]
    afters = [one.after for one in found.steps]
    assert afters == [
        (), ("node-lookup",), ("node-evaluate",), ("node-refund",), ("node-draft",)
    ]  # fmt: skip


def test_what_a_branch_decided_is_left_out() -> None:
    found = plan(at_the_gate(refundable=False))
    assert found.over
    assert shown(found)[2:] == [
        ("payments.refund", "left_out"),
        ("draft", "left_out"),
        ("mail.send", "left_out"),
    ]


def test_a_refused_refund_is_refused_and_what_came_after_it_is_left_out() -> None:
    run = at_the_gate()
    decide(run, "reject")
    found = plan(run)
    assert (step(found, "payments.refund").standing, step(found, "payments.refund").why) == (
        "refused",
        "rejected",
    )
    assert shown(found)[3:] == [("draft", "left_out"), ("mail.send", "left_out")]


def test_a_draft_that_was_sent_back_is_written_before_the_letter_is_proposed_again() -> None:
    run = at_the_gate()
    decide(run, "approve")
    run.answer({"id": "r1", "amount": "20.00"})
    run.reply(text="We refunded your order.")
    assert step(plan(run), "mail.send").standing is StepStanding.WAITING
    assert step(plan(run), "draft").standing is StepStanding.DONE
    decide(run, "revise", reason=run.keep(b"kinder"))
    found = plan(run)
    assert shown(found)[3:] == [("draft", "under_way"), ("mail.send", "ahead")]
    assert step(found, "mail.send").why == "sent_back"


def test_a_failed_look_up_ends_the_chain() -> None:
    run = refund()
    effect = next(iter(run.open))
    run.feed(ToolFailed(at=run.now, effect=effect, error="refused", sent=True, transient=False))
    found = plan(run)
    assert shown(found)[0] == ("orders.lookup", "failed")
    assert {standing for _, standing in shown(found)[1:]} == {"left_out"}


def test_a_cancelled_run_leaves_its_gated_call_out() -> None:
    run = at_the_gate()
    run.feed(CancelAsked(at=run.now, by="somebody", reason=""))
    found = plan(run)
    assert step(found, "payments.refund").standing is StepStanding.LEFT_OUT
    assert not [one for one in found.steps if one.standing is StepStanding.AHEAD]


@proves("R-UI-3", part="plan with dependency state")
@proves("R-GRAPH-19", part="what waits for what is told as it is done")
def test_of_several_calls_in_one_reply_the_gated_one_holds_those_behind_it() -> None:
    run = loop()
    run.reply(REFUND, LOOKUP, OTHER)
    found = plan(run)
    assert [standing for _, standing in shown(found)] == ["waiting", "behind", "behind", "behind"]
    assert [one.after for one in found.steps] == [(), ("call-c1",), ("call-c1",), ("call-c2", "call-c3")]
    assert found.steps[-1].kind == "model"
    assert {one.by for one in found.steps[:3]} == {"model"}


def test_reading_calls_go_side_by_side_and_the_model_waits_for_all() -> None:
    run = loop()
    run.reply(LOOKUP, OTHER, REFUND)
    found = plan(run)
    assert [standing for _, standing in shown(found)] == ["under_way", "under_way", "behind", "behind"]
    assert [one.after for one in found.steps][2:] == [("call-c1", "call-c2"), ("call-c3",)]
    run.answer({"id": "A-1"})
    run.answer({"id": "A-2"})
    assert [standing for _, standing in shown(plan(run))] == ["done", "done", "waiting", "behind"]


def test_the_same_call_twice_does_not_go_beside_itself() -> None:
    run = loop()
    run.reply(REFUND, LOOKUP, LOOKUP, OTHER)
    assert [one.after for one in plan(run).steps][1:4] == [
        ("call-c1",), ("call-c2",), ("call-c2",)
    ]  # fmt: skip


def test_no_more_go_side_by_side_than_the_boundary_lets() -> None:
    run = loop(boundary=BOUNDARY.evolve(max_parallel_tool_calls=2))
    run.reply(LOOKUP, OTHER, ("orders.lookup", {"id": "A-3"}))
    assert [one.after for one in plan(run).steps][:3] == [(), (), ("call-c1", "call-c2")]


def test_calls_that_were_not_allowed_are_refused_each_with_why() -> None:
    run = loop()
    run.reply(("no.such.tool", {}), ("orders.lookup", {"wrong": 1}), LOOKUP)
    found = plan(run)
    assert [(one.standing.value, one.why) for one in found.steps[:3]] == [
        ("refused", "unregistered"), ("refused", "malformed"), ("under_way", ""),
    ]  # fmt: skip


def test_what_is_queued_in_a_run_that_is_being_stopped_is_left_out() -> None:
    run = loop()
    run.reply(LOOKUP, REFUND)
    run.feed(CancelAsked(at=run.now, by="somebody", reason=""))
    assert not plan(run).over
    assert shown(plan(run)) == [
        ("act", "done"), ("orders.lookup", "under_way"), ("payments.refund", "left_out")
    ]  # fmt: skip


def test_calls_of_a_reply_that_was_cut_off_are_left_out() -> None:
    run = loop()
    run.reply(REFUND, LOOKUP)
    run.feed(GateExpired(at=run.now, request=str(run.requests[0].request)))
    found = plan(run)
    assert found.over
    assert shown(found) == [
        ("act", "done"), ("payments.refund", "left_out"), ("orders.lookup", "left_out")
    ]  # fmt: skip


def test_a_change_of_which_nobody_knows_waits_for_somebody_s_word() -> None:
    run = loop()
    run.reply(REFUND, LOOKUP)
    decide(run, "approve")
    run.feed(Recovered(at=run.now, effect=next(iter(run.open)), resolution="in_doubt"))
    doubtful, behind, _ = plan(run).steps
    assert (doubtful.standing, doubtful.wait and doubtful.wait.what) == ("in_doubt", "verdict")
    assert (behind.standing, behind.after) == ("behind", ("call-c1",))


def test_a_call_that_failed_in_passing_waits_for_its_next_attempt() -> None:
    tools = {**TOOLS, "orders.lookup": TOOLS["orders.lookup"].evolve(max_retries=2)}
    run = loop(tools=tools)
    run.reply(LOOKUP)
    run.feed(ToolFailed(at=run.now, effect=next(iter(run.open)), error="timeout", sent=True, transient=True))
    first = plan(run).steps[0]
    assert first.standing is StepStanding.WAITING
    assert first.wait is not None
    assert (first.wait.what, first.wait.until) == ("retry", run.state.timer)


def test_a_paused_run_waits_for_whoever_resumes_it() -> None:
    run = loop()
    run.feed(Paused(at=run.now, by="somebody", reason=""))
    run.reply(LOOKUP, REFUND)
    found = plan(run)
    assert found.steps[0].wait is not None
    assert found.steps[0].wait.what == "resume"
    assert [standing for _, standing in shown(found)] == ["waiting", "behind", "behind"]


def test_what_another_run_writes_to_is_waited_for() -> None:
    shared = TOOLS["payments.refund"].evolve(conflict_keys=("order:{id}",))
    run = loop(tools={**TOOLS, "payments.refund": shared})
    run.reply(REFUND)
    (asked,) = run.requests
    said = GateDecided(
        at=run.now, request=str(asked.request), decision="approve", decision_digest=NIL, by="somebody",
        role="reviewer", packet_digest=asked.packet_digest,
    )  # fmt: skip
    run.feed(said, Headroom(busy=("order:A-1",)))
    first = plan(run).steps[0]
    assert first.standing is StepStanding.WAITING
    assert first.wait is not None
    assert (first.wait.what, first.wait.until) == ("claim", run.state.timer)


def test_a_run_frozen_at_its_limit_waits_for_more_budget() -> None:
    run = loop(boundary=BOUNDARY.evolve(on_exhaustion="request"), tool_calls=1)
    run.reply(LOOKUP)
    run.answer({"id": "A-1"})
    run.reply(OTHER)
    first = plan(run).steps[0]
    assert (first.standing, first.wait and first.wait.what) == ("waiting", "budget")


def test_a_model_at_work_is_a_step_and_an_answered_run_has_none_before_it() -> None:
    run = loop()
    assert shown(plan(run)) == [("act", "under_way")]
    run.reply(text="It cannot be known.")
    assert shown(plan(run)) == [("act", "done")]


@pytest.mark.parametrize("again", [False, True])
def test_a_branch_over_a_fact_is_decided_unless_a_call_on_its_way_writes_it_anew(*, again: bool) -> None:
    plain = document("tool", "tool", "branch", "tool", choices=False)
    nodes = {node["id"]: node for node in plain["nodes"]}
    parameters = {"fact": "tool_1", "field": "n", "equals": 1}
    nodes["branch-3"]["config"] = {"predicate": {"name": "fact_is", "parameters": parameters}}
    if again:
        nodes["tool-2"]["config"]["fact"] = "tool_1"
    graph = compiled(plain)
    run = Simulation.of(graph, manifest(graph, pins(LADDER, LADDER_BOUNDARY, (PROMPT,)), LIMITS))
    run.start()
    assert step(plan(run), "t.read").standing is StepStanding.AHEAD
    decide(run, "approve")
    run.answer({"n": 2})
    assert step(plan(run), "t.read").standing is (StepStanding.AHEAD if again else StepStanding.LEFT_OUT)


def test_criteria_stand_as_they_were_last_looked_at() -> None:
    asked = (
        Criterion(validator="contains", parameters={"text": "refund"}),
        Criterion(validator="contains", parameters={"text": "sorry"}),
        Criterion(validator="fact_committed", parameters={"fact": "mail"}),
    )
    run = at_the_gate(*asked)
    assert [one.met for one in plan(run).criteria[:3]] == [
        CriterionState.OPEN,
        CriterionState.OPEN,
        CriterionState.UNMET,
    ]
    workflow = {one.parameters["fact"]: one.met for one in plan(run).criteria[3:]}
    assert workflow == {
        "order": CriterionState.MET,
        "policy": CriterionState.MET,
        "refund": CriterionState.UNMET,
        "mail": CriterionState.UNMET,
    }
    decide(run, "approve")
    run.answer({"id": "r1", "amount": "20.00"})
    run.reply(text="The refund is on its way.")
    # The draft was looked at for what it says, not for what the goal asks of the answer.
    assert [one.met for one in plan(run).criteria[:3]] == [
        CriterionState.OPEN,
        CriterionState.OPEN,
        CriterionState.UNMET,
    ]
    decide(run, "approve")
    run.answer({"id": "m1"})
    assert run.state.outcome == "LOW_CONFIDENCE"
    # The check names the first that does not hold, and says nothing of the others.
    assert [one.met for one in plan(run).criteria[:3]] == [
        CriterionState.OPEN,
        CriterionState.UNMET,
        CriterionState.MET,
    ]


def test_criteria_of_an_answer_that_passed_are_met_and_of_one_that_failed_told_apart() -> None:
    asked = (
        Criterion(validator="contains", parameters={"text": "known"}),
        Criterion(validator="contains", parameters={"text": "sorry"}),
    )
    run = loop(goal=Goal(objective="what is it?", acceptance=asked))
    run.reply(text="It is not known.")
    assert [one.met for one in plan(run).criteria] == [CriterionState.MET, CriterionState.UNMET]
    run.reply(text="We are sorry: it is not known.")
    assert [one.met for one in plan(run).criteria] == [CriterionState.MET, CriterionState.MET]
    assert plan(run).over


def test_a_page_shows_the_first_that_is_not_over_with_what_led_to_it() -> None:
    def steps(over: int, rest: int) -> tuple[PlanStep, ...]:
        of = [StepStanding.DONE] * over + [StepStanding.AHEAD] * rest
        return tuple(
            PlanStep(id=f"call-c{n}", kind="call", name="t", by="model", standing=one)
            for n, one in enumerate(of)
        )

    assert select_step_window(steps(2, 3), 10, 4) == (0, 5)
    assert select_step_window(steps(20, 30), 10, 4) == (16, 26)
    assert select_step_window(steps(20, 1), 10, 4) == (11, 21)
    assert select_step_window((), 10, 4) == (0, 0)
    assert select_step_window(steps(30, 0), 10, 4) == (20, 30)


def test_what_is_taken_back_is_a_step_and_what_stands_or_was_undone_is_said() -> None:
    run = run_with("orders.place")
    run.reply(("orders.note", {"n": 2}), ("orders.lookup", {"id": "A-1"}))
    run.answer({"id": "N-1"})
    run.feed(CancelAsked(at=run.now, by="somebody", reason=""))
    run.answer({"id": "A-1"})
    found = plan(run)
    undo = step(found, "orders.cancel")
    assert (found.over, undo.by, undo.call, undo.standing) == (False, "undo", "u1", StepStanding.UNDER_WAY)
    note = step(found, "orders.note")
    assert (note.standing, note.became) == (StepStanding.DONE, "left")
    assert not [one for one in found.steps if one.standing in (StepStanding.AHEAD, StepStanding.BEHIND)]
    run.answer({"id": "O-1"})
    assert plan(run).over
