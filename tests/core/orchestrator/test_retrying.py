"""Where a retry may begin, and what it knows: checkpoints of any run of any graph can be entered anew."""

from collections import Counter
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.core.admission.checkpoint_retry import (
    ANEW,
    ENTERED,
    KEPT,
    PASSED_BY,
    SENTENCES,
    WORKED_OUT,
    UnfitReason,
    checkpoint_of,
    describe_next_action,
    find_missing_pin,
    otherwise_since,
    with_later_refusals,
)
from orchestrator.core.admission.retry_recheck import RecheckedState, judged_again
from orchestrator.core.admission.run_admission import limits_again
from orchestrator.core.common.goal import Goal
from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.domain.boundary import Boundary
from orchestrator.core.domain.content_store import ContentStore
from orchestrator.core.domain.effects import CallModel, CallTool
from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.core.domain.run_events import GateDecided, Headroom, ModelFailed, Recovered
from orchestrator.core.domain.run_state import PendingEffect, RunState, SideEffect
from orchestrator.core.nodes import discover_node_kinds
from tests.core.orchestrator.loops import BOUNDARY, GRAPH, TOOLS, loop
from tests.core.orchestrator.playing import SLOW, ended, hold, next_event
from tests.core.orchestrator.retries import checkpoints, retried
from tests.core.orchestrator.simulation import NIL, SALT, Simulation, pins
from tests.factories.graphs import graphs
from tests.proves import proves

FACT_OF = {"id": "A-1"}


def looked_up() -> Simulation:
    """A tool loop that has looked an order up and waits for its next reply."""
    run = loop()
    run.reply(("orders.lookup", FACT_OF))
    run.answer({"id": "A-1", "total": "5.00"})
    return run


@proves("R-SESS-9", part="retry from a checkpoint")
def test_every_field_of_a_state_is_decided_on() -> None:
    decided = Counter((*KEPT, *WORKED_OUT, *ANEW))
    assert set(decided) == set(RunState.model_fields)
    assert [name for name, times in decided.items() if times > 1] == []


@proves("R-SESS-9", part="retry from a checkpoint")
def test_every_kind_of_node_is_entered_or_passed_by() -> None:
    assert set(ENTERED) | PASSED_BY == set(discover_node_kinds())
    assert not set(ENTERED) & PASSED_BY
    assert set(SENTENCES) == set(UnfitReason)


@proves("R-SESS-9", part="retry from a checkpoint")
def test_whatever_a_checkpoint_gives_can_be_entered_and_comes_to_an_end() -> None:
    seen: Counter[str] = Counter()

    @given(graphs(extra=6), st.integers(0, 2**32))
    @settings(max_examples=30, deadline=None, suppress_health_check=SLOW)
    def goes_on(graph: CompiledGraph, seed: int) -> None:
        play = Random(seed)
        first = ended(graph, play)
        found = checkpoints(first)
        assert found, "the beginning is a checkpoint"
        for state in play.sample(found, min(4, len(found))):
            seen[graph.nodes[state.position].kind] += 1
            _played_to_its_end(retried(first, state), play)

    goes_on()
    # Far below what any seed covers: a generator that lost its shapes would come here.
    assert len(seen) >= 6, seen


def _played_to_its_end(run: Simulation, play: Random) -> None:
    before = run.state
    walk = run.start()
    hold(before, walk, run)
    assert describe_next_action(run.graph, before)
    for _ in range(5_000):
        if run.state.outcome is not None:
            break
        event, takes = next_event(play, run)
        before = run.state
        hold(before, run.feed(event, after_ms=takes), run)
    assert run.state.outcome is not None, "the retry goes on and on"
    assert not run.open


@proves("R-SESS-9", part="retry from a checkpoint")
def test_what_was_learnt_stays_and_what_was_spent_does_not() -> None:
    run = looked_up()
    then = run.state
    again = retried(run, then)
    assert again.state.version == 0
    assert (again.state.usage, again.state.pending, again.state.visits) == ({}, {}, {})
    assert again.state.limits == run.manifest.limits
    assert then.pending, "the run waits for its model"
    assert {name: fact.digest for name, fact in again.state.facts.items()} == {
        name: fact.digest for name, fact in then.facts.items()
    }
    again.start()
    (asked,) = again.open.values()
    prompts = [str(one.request) for one in (run.asked[-1], asked) if isinstance(one, CallModel)]
    # All that the model is told is what it was told, but for the budget that is left.
    old, new = (run.contents.get(one, b"") or again.contents[one] for one in prompts)
    assert b"orders.lookup" in new
    assert old.split(b"BUDGET LEFT")[0] == new.split(b"BUDGET LEFT")[0]


@proves("R-SESS-9", part="retry from a checkpoint")
def test_the_facts_of_a_retry_come_after_those_it_began_with() -> None:
    run = looked_up()
    again = retried(run, run.state)
    again.start()
    again.reply(("orders.lookup", {"id": "A-2"}))
    again.answer({"id": "A-2", "total": "6.00"})
    order = again.state.facts_in_order()
    assert [name for name, _ in order] == ["f1", "f2"]
    assert order[0][1].record <= 0 < order[1][1].record


@proves("R-TOOL-9", part="one key for a line of retries")
def test_the_same_action_has_the_same_key_in_a_retry() -> None:
    run = looked_up()
    again = retried(run, run.state)
    again.start()
    keys = []
    for one in (run, again):
        one.reply(("orders.lookup", {"id": "A-3"}))
        (effect,) = one.open.values()
        keys.append(effect.key)  # type: ignore[union-attr]
        assert effect.id not in {other.id for other in run.asked if other is not effect}
    assert keys[0] == keys[1]


@proves("R-SESS-9", part="retry from a checkpoint")
def test_a_model_that_failed_is_asked_as_if_for_the_first_time() -> None:
    run = loop()
    (effect,) = run.open.values()
    run.feed(ModelFailed(at=run.now, effect=effect.id, error="unreachable", transient=True))
    assert run.state.counters.model_attempts == 1
    assert run.state.timer is not None
    again = retried(run, run.state)
    assert (again.state.counters.model_attempts, again.state.timer) == (0, None)
    again.start()
    (asked,) = again.open.values()
    assert asked.attempt == 1  # type: ignore[union-attr]


@proves("R-SESS-9", part="no way around a no")
def test_what_was_said_no_to_after_a_checkpoint_counts_in_a_retry() -> None:
    run = looked_up()
    then = run.state.evolve(refused={"mail.send": 2}, alarms=("a",), repeats={"x": 1})
    counters = then.counters.evolve(denials=3, refusals=2, errors=9)
    end = then.evolve(
        counters=counters, refused={"mail.send": 1, "payments.refund": 1}, alarms=("b", "a"), guarded=True,
        repeats={"x": 2},
    )  # fmt: skip
    found = checkpoint_of(run.graph, then)
    assert isinstance(found, RunState)
    again = with_later_refusals(found, end)
    assert (again.counters.denials, again.counters.refusals, again.counters.errors) == (3, 2, 0)
    assert again.refused == {"mail.send": 2, "payments.refund": 1}
    assert (again.alarms, again.guarded, again.repeats) == (("a", "b"), True, {"x": 1})
    assert with_later_refusals(found, then) == found


AT_WORK = PendingEffect(kind="call_tool", call="c1", attempt=1, reserve={})


@proves("R-SESS-9", part="retry from a checkpoint")
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"outcome": TerminalCode.SUCCESS}, UnfitReason.ENDED),
        ({"interrupt": "timeout"}, UnfitReason.ENDING),
        ({"paused": True}, UnfitReason.PAUSED),
        ({"pending": {"e": AT_WORK}}, UnfitReason.CALL_UNDER_WAY),
        (
            {"deeds": {"c1": SideEffect(tool="ledger.post", arguments=NIL, standing="in_doubt")}},
            UnfitReason.IN_DOUBT,
        ),
        ({"position": "invoke"}, UnfitReason.PASSED_BY),
        ({"position": "check"}, UnfitReason.PASSED_BY),
    ],
)
def test_a_record_at_which_something_is_open_is_no_checkpoint(
    changes: dict[str, Any], why: UnfitReason
) -> None:
    run = looked_up()
    assert isinstance(checkpoint_of(run.graph, run.state), RunState)
    assert checkpoint_of(run.graph, run.state.evolve(**changes)) is why


@proves("R-SESS-9", part="retry from a checkpoint")
def test_no_retry_begins_between_the_steps_of_a_call_or_with_a_persons_yes() -> None:
    run = looked_up()
    run.reply(("payments.refund", {"amount": "5.00"}))
    assert run.requests
    assert checkpoint_of(run.graph, run.state) is UnfitReason.ASKS_PEOPLE
    before = [state for state in checkpoints(run) if state.queue]
    # The call stands there as the model wrote it: no rule of this moment has looked at it yet.
    assert before
    assert all(call.arguments is None for state in before for call in state.queue)
    assert describe_next_action(run.graph, before[-1]) == "Checks the call of payments.refund"


@proves("R-SESS-9", part="nothing happens twice")
def test_changes_that_do_not_stand_as_they_stood_are_named() -> None:
    deed = SideEffect(tool="ledger.post", arguments=NIL)
    assert otherwise_since({}, {}) == ()
    assert otherwise_since({"c1": deed}, {"c1": deed}) == ()
    assert otherwise_since({"c1": deed}, {"c1": deed.evolve(standing="left", why="irreversible")}) == ()
    for end in ({}, {"c1": deed.evolve(standing="undone")}, {"c1": deed.evolve(standing="in_doubt")}):
        assert otherwise_since({"c1": deed}, end) == ("ledger.post",)
    assert otherwise_since({}, {"c1": deed}) == ("ledger.post",)


@proves("R-SESS-9", part="retry from a checkpoint")
def test_what_the_pins_have_not_is_named() -> None:
    run = looked_up()
    pins, state = run.manifest.pins, run.state
    assert find_missing_pin(run.graph, pins, state) == ""
    gone = state.evolve(deeds={"c1": SideEffect(tool="gone.tool", arguments=NIL)})
    assert find_missing_pin(run.graph, pins, gone) == "the tool gone.tool"
    assert find_missing_pin(run.graph, pins.evolve(prompts={}), state).startswith("the prompt ")


@proves("R-TOOL-15", part="a retry takes back what the run before it did")
def test_room_to_undo_is_kept_back_within_the_limits_of_the_retry() -> None:
    run = looked_up()
    deed = SideEffect(tool="ledger.post", arguments=NIL, room={"tool_calls": Decimal(99)})
    again = retried(run, run.state.evolve(deeds={"c1": deed}, kept={"tool_calls": Decimal(99)}))
    # The tool names no way back any more, so nothing is kept for one.
    assert (again.state.deeds["c1"].room, again.state.kept) == ({}, {})


@proves("R-SESS-9", part="what is in force now holds")
def test_a_goal_that_is_forbidden_by_now_is_refused_behind_the_intake() -> None:
    run = looked_up()
    again, room, desk = retried(run, run.state), Headroom(), ContentStore(SALT, run.contents)
    as_it_was = judged_again(run.graph, again.manifest, again.state, room, run.now, desk)
    assert isinstance(as_it_was, RecheckedState)
    assert as_it_was.state == again.state
    # It says what the nodes behind it find, as they say it in any run.
    assert {one.body.model_dump()["kind"] for one in as_it_was.said} == {"phase_noted", "policy_decided"}
    boundary = run.manifest.pins.boundary.evolve(denied_words=("how much",))
    now = again.manifest.evolve(pins=run.manifest.pins.evolve(boundary=boundary))
    assert judged_again(run.graph, now, again.state, room, run.now, desk) == "denied_word:how much"
    # One that begins with the intake is judged by it.
    first = again.state.evolve(position=run.graph.entry)
    assert judged_again(run.graph, now, first, room, run.now, desk) == RecheckedState(first, ())


WIDE = BOUNDARY.evolve(budget={"tool_calls": Decimal(9), "cost_usd": Decimal(2)})
NARROW = BOUNDARY.evolve(budget={"tool_calls": Decimal(2), "cost_usd": Decimal(1)})


def limits_of(asked: dict[str, Decimal], boundary: Boundary) -> Any:
    """The limits of a retry under a boundary whose task asked for `asked`."""
    return limits_again(GRAPH, pins(TOOLS, boundary, ("tool-loop",)), Goal(objective="2 + 2?"), asked)


@proves("R-SESS-9", part="a budget of its own")
def test_a_retry_is_given_what_its_task_would_be_given_now() -> None:
    assert limits_of({}, NARROW)["tool_calls"] == 2
    assert limits_of({}, WIDE)["tool_calls"] == 9
    # Its task asked for less than it would have been given; so does the retry, of whatever is given now.
    asked = {"tool_calls": Decimal(3), "wall_clock_seconds": Decimal(20)}
    for boundary, calls in ((WIDE, 3), (NARROW, 2)):
        found = limits_of(asked, boundary)
        assert (found["tool_calls"], found["wall_clock_seconds"]) == (calls, 20)


@proves("R-TOOL-9", part="one key for a line of retries")
def test_what_a_person_wrongly_said_did_not_happen_goes_out_under_the_same_key() -> None:
    run = looked_up()
    first = _refund_in_doubt(run)
    run.feed(GateDecided(decision="not_happened", **_word(run)))
    assert not run.state.deeds
    again = retried(run, run.state)
    again.start()
    assert _refund_asked(again).key == first.key


def _refund_asked(run: Simulation) -> CallTool:
    run.reply(("payments.refund", {"amount": "5.00"}))
    run.feed(GateDecided(decision="approve", **_word(run)))
    (effect,) = run.open.values()
    assert isinstance(effect, CallTool)
    return effect


def _refund_in_doubt(run: Simulation) -> CallTool:
    effect = _refund_asked(run)
    run.feed(Recovered(at=run.now, effect=effect.id, resolution="in_doubt"))
    return effect


def _word(run: Simulation) -> dict[str, Any]:
    (request,) = run.requests
    said = {"decision_digest": NIL, "by": "x", "role": "reviewer", "packet_digest": NIL}
    return {"at": run.now, "request": str(request.request), **said}
