"""What a retry has done, does, and has before it: with what the run before it left (R-UI-3, R-SESS-9)."""

from orchestrator.core.domain.run_events import CancelAsked
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.readmodel.run_plan import StepStanding
from tests.core.orchestrator.loops import loop
from tests.core.orchestrator.outlooks import plan, shown, step
from tests.core.orchestrator.retries import checkpoints, retried
from tests.core.orchestrator.simulation import Simulation
from tests.core.orchestrator.test_outlook import LOOKUP, OTHER, REFUND, at_the_gate, decide
from tests.proves import proves


def at_node(run: Simulation, node: str) -> RunState:
    """The newest checkpoint at a node that asked for nothing yet."""
    return [state for state in checkpoints(run) if state.position == node and not state.queue][-1]


def cancelled(run: Simulation) -> Simulation:
    """The run, once somebody cancelled it."""
    run.feed(CancelAsked(at=run.now, by="somebody", reason=""))
    assert run.state.outcome is not None
    return run


def at_the_letter() -> Simulation:
    """A refund that was made; the letter waits for people."""
    run = at_the_gate()
    decide(run, "approve")
    run.answer({"id": "r1", "amount": "20.00"})
    run.reply(text="We refunded your order.")
    return run


@proves("R-UI-3", part="plan with dependency state")
def test_a_retry_that_begins_at_a_fixed_call_has_it_before_it() -> None:
    run = at_the_gate()
    found = plan(retried(run, at_node(run, "refund")))
    assert shown(found) == [
        ("orders.lookup", "done"), ("policy.evaluate", "done"), ("payments.refund", "ready"),
        ("draft", "ahead"), ("mail.send", "ahead"),
    ]  # fmt: skip
    assert [one.after for one in found.steps[2:]] == [(), ("node-refund",), ("node-draft",)]


def test_a_fact_that_the_call_in_front_writes_anew_decides_nothing_yet() -> None:
    run = at_the_gate(refundable=False)
    # As where a way leads back to the call.
    then = at_node(run, "evaluate").evolve(facts=run.state.facts)
    found = plan(retried(run, then))
    assert (step(found, "policy.evaluate").standing, step(found, "payments.refund").standing) == (
        StepStanding.READY,
        StepStanding.AHEAD,
    )


def test_a_fixed_call_at_which_a_retry_begins_is_left_out_once_that_is_cancelled() -> None:
    run = at_the_gate()
    found = plan(cancelled(retried(run, at_node(run, "refund"))))
    assert step(found, "payments.refund").standing is StepStanding.LEFT_OUT


@proves("R-UI-3", part="plan with dependency state")
def test_a_draft_of_the_run_before_is_done_in_its_place() -> None:
    run = at_the_letter()
    again = retried(run, at_node(run, "send"))
    done = [("orders.lookup", "done"), ("policy.evaluate", "done"), ("payments.refund", "done")]
    assert shown(plan(again)) == [*done, ("draft", "done"), ("mail.send", "ready")]
    assert shown(plan(cancelled(again))) == [*done, ("draft", "done"), ("mail.send", "left_out")]


def test_a_draft_stands_in_front_of_the_letter_that_was_made_of_it() -> None:
    run = at_the_letter()
    decide(run, "approve")
    run.answer({"id": "m1"})
    sent = [state for state in checkpoints(run) if "mail" in state.facts]
    assert [name for name, _ in shown(plan(retried(run, sent[0])))] == [
        "orders.lookup", "policy.evaluate", "payments.refund", "draft", "mail.send",
    ]  # fmt: skip


@proves("R-UI-3", part="plan with dependency state")
def test_calls_that_the_run_before_asked_for_are_left_out_where_the_retry_is_cut_off() -> None:
    run = loop()
    run.reply(REFUND, LOOKUP, OTHER)
    then = next(state for state in checkpoints(run) if len(state.queue) == 3)
    again = retried(run, then)
    again.start()
    assert [standing for _, standing in shown(plan(again))][:3] == ["waiting", "behind", "behind"]
    calls = [(one.call, one.standing.value) for one in plan(cancelled(again)).steps if one.kind == "call"]
    assert calls == [("c1", "left_out"), ("c2", "left_out"), ("c3", "left_out")]
    assert calls == [(one.call, one.standing.value) for one in plan(cancelled(run)).steps if one.call]
