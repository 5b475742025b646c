"""A run that ends without its result takes back what it did, newest first (R-TOOL-15)."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.compiler.compiler import compile_graph
from orchestrator.core.domain.call_outcomes import Answer
from orchestrator.core.domain.effects import AskApproval, CallTool
from orchestrator.core.domain.run_events import (
    CancelAsked,
    GateExpired,
    Headroom,
    Paused,
    Recovered,
    Resumed,
    StopAsked,
    TimerFired,
    ToolFailed,
)
from orchestrator.core.domain.tool_spec import Risk
from tests.core.orchestrator.deeds import (
    BOUNDARY,
    CANCEL,
    WAY,
    decide,
    fail,
    left,
    report,
    run_with,
    undos,
)
from tests.core.orchestrator.faulty import numbers
from tests.core.orchestrator.simulation import Simulation
from tests.factories import graphs
from tests.proves import proves


@proves("R-TOOL-15", part="reverse order, pure skipped, irreversible reported")
def test_what_was_done_is_undone_newest_first() -> None:
    run = run_with("orders.place", "orders.ping", "orders.ship", "orders.place")
    fail(run)
    assert undos(run) == [("orders.cancel", {"id": "O-4", "reason": "undone"})]
    assert run.state.status == "in_progress"
    run.answer({})
    assert undos(run)[1:] == [("orders.cancel", {"id": "O-1", "reason": "undone"})]
    run.answer({})
    assert run.state.outcome is TerminalCode.IMPOSSIBLE
    assert [entry["now"] for entry in report(run)["undone"]] == [
        "Order O-4 stands cancelled.", "Order O-1 stands cancelled.",
    ]  # fmt: skip
    assert left(run) == {"c3": "irreversible"}
    assert "compensation" not in [body.breaker for body in run.said("breaker_tripped")]


@proves("R-TOOL-15", part="whatever ends the run")
@pytest.mark.parametrize("how", ["cancelled", "expired", "out of budget"])
def test_whatever_ends_the_run_it_is_undone_first(how: str) -> None:
    run = run_with("orders.place", model_turns=1 if how == "out of budget" else 9)
    if how == "cancelled":
        run.feed(CancelAsked(at=run.now, by="x", reason=""))
        run.reply(("orders.place", {"n": 2}))
    elif how == "expired":
        run.feed(run.model_reply(next(iter(run.open.values())), ("x", {})), after_ms=10**9)  # type: ignore[arg-type]
    assert [name for name, _ in undos(run)] == ["orders.cancel"]
    assert run.state.outcome is None
    effect = next(iter(run.open.values()))
    assert isinstance(effect, CallTool)
    assert effect.timeout_ms == CANCEL.timeout_ms
    run.answer({})
    assert run.state.outcome in (
        TerminalCode.USER_CANCEL,
        TerminalCode.TIMEOUT,
        TerminalCode.BUDGET_EXHAUSTED,
    )


def test_a_run_that_succeeds_undoes_nothing() -> None:
    run = run_with("orders.place")
    run.reply(text="Done.")
    assert (run.state.outcome, undos(run)) == (TerminalCode.SUCCESS, [])


@proves("R-TOOL-15", part="a failed compensation alerts and the rest go on")
@pytest.mark.parametrize(
    ("answer", "why"), [(Answer.REFUSED, "undo_failed"), (Answer.ERROR, "undo_in_doubt")]
)
def test_an_undo_that_fails_is_told_and_the_others_are_made(answer: Answer, why: str) -> None:
    run = run_with("orders.place", "orders.place")
    fail(run)
    (effect,) = run.open.values()
    run.feed(
        ToolFailed(at=run.now, effect=effect.id, error="refused", sent=True, transient=False, answer=answer)
    )
    assert [(b.breaker, b.reason) for b in run.said("breaker_tripped")] == [("compensation", why)]
    run.answer({})
    assert left(run) == {"c2": why}
    assert [entry["call"] for entry in report(run)["undone"]] == ["c1"]


@proves("R-TOOL-15", part="one key however often it is tried")
@pytest.mark.parametrize("came", ["failed", "in_doubt", "abandoned"])
def test_an_undo_is_tried_again_under_its_one_key(came: str) -> None:
    run = run_with("orders.place")
    fail(run)
    (effect,) = run.open.values()
    if came == "failed":
        run.feed(ToolFailed(at=run.now, effect=effect.id, error="unreachable", sent=False, transient=True))
    else:
        run.feed(Recovered(at=run.now, effect=effect.id, resolution=came))  # type: ignore[arg-type]
    run.feed(TimerFired(at=run.now), after_ms=60_000)
    sent = [e for e in run.asked if isinstance(e, CallTool) and e.call == "u1"]
    assert len({e.id for e in sent}) == 2
    assert len({e.key for e in sent}) == 1
    run.answer({})
    assert left(run) == {}


@proves("R-TOOL-15", part="the boundary's choice: ask")
@pytest.mark.parametrize("word", ["approve", "reject", "expire"])
def test_people_decide_on_each_undo_where_the_boundary_asks(word: str) -> None:
    run = run_with("orders.place", boundary=BOUNDARY.evolve(compensation="ask"))
    fail(run)
    (ask,) = run.requests
    assert isinstance(ask, AskApproval)
    assert (ask.tool, run.state.status, run.open) == ("orders.cancel", "awaiting_gate", {})
    shown = orjson.loads(run.contents[ask.packet])
    assert "takes back what orders.place did" in shown["why"]
    if word == "expire":
        run.feed(GateExpired(at=run.now, request=str(ask.request)))
    else:
        decide(run, word)
    if word == "approve":
        (effect,) = run.open.values()
        assert isinstance(effect, CallTool)
        assert (effect.grant, effect.action_digest) == (str(ask.request), ask.action_digest)
        run.answer({})
    expected = {"approve": {}, "reject": {"c1": "rejected"}, "expire": {"c1": "nobody_decided"}}
    assert (left(run), run.state.outcome) == (expected[word], TerminalCode.IMPOSSIBLE)


def test_a_boundary_may_only_want_a_report() -> None:
    run = run_with("orders.place", boundary=BOUNDARY.evolve(compensation="report"))
    fail(run)
    assert (left(run), undos(run)) == ({"c1": "boundary_reports"}, [])


@pytest.mark.parametrize(
    ("room", "why"),
    [
        (Headroom(missing_scopes=("submit",)), "asks"),
        (Headroom(raised_tools={"orders.cancel": Risk.DESTRUCTIVE}), "asks"),
        (Headroom(stopped_tools=("orders.cancel",)), "tool_stopped"),
    ],
)
def test_what_an_admin_tightened_since_holds_for_undoing_too(room: Headroom, why: str) -> None:
    run = run_with("orders.place")
    effect = next(iter(run.open.values()))
    run.feed(run.model_reply(effect, refusal=True), room)  # type: ignore[arg-type]
    if why == "asks":
        assert [ask.tool for ask in run.requests if isinstance(ask, AskApproval)] == ["orders.cancel"]
    else:
        assert left(run) == {"c1": why}


@proves("R-TOOL-15", part="within its own reserved budget")
def test_room_for_the_way_back_is_kept_from_the_start() -> None:
    run = run_with("orders.place", tool_calls=3)
    assert run.state.left("tool_calls") == 1
    run.reply(("orders.place", {"n": 2}))
    assert [e.tool for e in run.asked if isinstance(e, CallTool)] == ["orders.place", "orders.cancel"]
    run.answer({})
    assert run.state.usage["tool_calls"] == 2
    assert left(run) == {}


def test_what_is_in_doubt_is_left_to_people() -> None:
    run = run_with()
    run.reply(("orders.place", {"n": 1}))
    (effect,) = run.open.values()
    run.feed(Recovered(at=run.now, effect=effect.id, resolution="in_doubt"))
    decide(run, "cancel")
    assert (left(run), undos(run)) == ({"c1": "in_doubt"}, [])


@pytest.mark.parametrize(("verdict", "undone"), [("happened", True), ("not_happened", False)])
def test_a_persons_word_settles_what_there_is_to_undo(verdict: str, undone: bool) -> None:
    run = run_with(boundary=BOUNDARY)
    run.reply(("orders.note", {"n": 1}))
    (effect,) = run.open.values()
    run.feed(Recovered(at=run.now, effect=effect.id, resolution="in_doubt"))
    decide(run, verdict)
    fail(run)
    assert (report(run).get("not_undone", []) != []) is undone


def test_what_names_no_way_back_or_finds_no_argument_is_left() -> None:
    run = run_with("orders.note")
    run.reply(("orders.place", {"n": 2}))
    run.answer({"other": 1})
    fail(run)
    assert left(run) == {"c1": "no_compensation", "c2": "arguments_unknown"}


@proves("R-SEC-9", part="nothing is undone under a stop")
@pytest.mark.parametrize("asking", [True, False])
def test_an_emergency_stop_ends_the_way_back(asking: bool) -> None:
    boundary = BOUNDARY.evolve(compensation="ask" if asking else "automatic")
    run = run_with("orders.place", "orders.place", boundary=boundary)
    fail(run)
    run.feed(StopAsked(at=run.now, scope="tenant", target="", reason="drill"))
    if not asking:
        run.answer({})
    expected = {"c2": "emergency_stop", "c1": "emergency_stop"} if asking else {"c1": "emergency_stop"}
    assert (left(run), run.state.outcome) == (expected, TerminalCode.IMPOSSIBLE)
    assert len(run.said("approval_withdrawn")) == asking


@pytest.mark.parametrize("asking", [True, False])
def test_a_cancel_on_the_way_back_changes_nothing(asking: bool) -> None:
    run = run_with("orders.place", boundary=BOUNDARY.evolve(compensation="ask" if asking else "automatic"))
    fail(run)
    run.feed(CancelAsked(at=run.now, by="x", reason=""))
    if asking:
        decide(run, "approve")
    run.answer({})
    assert (left(run), run.state.outcome) == ({}, TerminalCode.IMPOSSIBLE)


def test_a_paused_run_waits_between_two_undos() -> None:
    run = run_with("orders.place", "orders.place")
    fail(run)
    run.feed(Paused(at=run.now, by="x", reason=""))
    run.answer({})
    assert (run.state.status, len(undos(run))) == ("paused", 1)
    run.feed(Resumed(at=run.now, by="x"))
    run.answer({})
    assert (left(run), run.state.outcome) == ({}, TerminalCode.IMPOSSIBLE)


@proves("R-TOOL-15", part="the boundary allows the way back, or says that there is none")
def test_a_way_back_outside_the_boundary_is_a_fault_of_the_graph() -> None:
    bound = {**graphs.TOOLS, "t.keyed": graphs.TOOLS["t.keyed"].evolve(compensation=WAY)}
    plain, reporting = graphs.document("tool"), graphs.BOUNDARY.evolve(compensation="report")
    assert numbers(plain, tools=bound) == [20]
    compile_graph(plain, tools=bound, boundary=reporting, prompts=(graphs.PROMPT,))


STEPS = st.lists(st.sampled_from(["orders.place", "orders.note", "orders.ship", "orders.ping"]), max_size=4)
FATES = st.lists(st.sampled_from(["ok", "refused", "lost", "doubt"]), min_size=12, max_size=12)


def _meets(run: Simulation, fates: Iterator[str]) -> None:
    """Answer what is open as fate has it, until the run has ended."""
    for _ in range(40):
        if run.state.outcome is not None:
            return
        if run.requests:
            decide(run, "approve")
        elif not run.open:
            run.feed(TimerFired(at=run.now), after_ms=60_000)
        elif (fate := next(fates, "ok")) == "ok":
            run.answer({})
        else:
            effect = next(iter(run.open.values()))
            if fate == "doubt":
                run.feed(Recovered(at=run.now, effect=effect.id, resolution="in_doubt"))
            else:
                lost = fate == "lost"
                run.feed(ToolFailed(at=run.now, effect=effect.id, error=fate, sent=False, transient=lost))
    raise AssertionError(run.state)


@proves("R-TOOL-15", part="each is undone or left, once, whatever happens")
@given(steps=STEPS, fates=FATES, mode=st.sampled_from(["ask", "automatic", "report"]))
def test_every_deed_is_undone_or_left(steps: list[str], fates: list[str], mode: Any) -> None:
    run = run_with(*steps, boundary=BOUNDARY.evolve(compensation=mode))
    fail(run)
    _meets(run, iter(fates))
    noted = [name for name in steps if name != "orders.ping"]
    told = report(run)
    undone = [entry["call"] for entry in told.get("undone", [])]
    assert len({*undone, *left(run)} if noted else undone) == len(noted)
    keys = {e.key for e in run.asked if isinstance(e, CallTool) and e.call.startswith("u")}
    assert len(keys) <= steps.count("orders.place")
    assert run.state.kept.get("tool_calls", Decimal(0)) == 0
