"""Results that stand only once their reader has confirmed them (R-TOOL-12)."""

from decimal import Decimal
from typing import Any

import orjson
import pytest

from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.domain.effects import CallTool
from orchestrator.core.domain.run_events import (
    CancelAsked,
    GateDecided,
    Headroom,
    Paused,
    Resumed,
    StopAsked,
    TimerFired,
    ToolAnswered,
    ToolFailed,
)
from orchestrator.core.domain.tool_spec import ReadBack, Verifier
from tests.core.orchestrator.deeds import decide
from tests.core.orchestrator.loops import BOUNDARY, TOOLS, loop
from tests.core.orchestrator.simulation import NIL, Simulation
from tests.proves import proves

READER = TOOLS["payments.find"].evolve(max_retries=2)
BACK = ReadBack(tool=READER.name, arguments={"id": "/result/id"}, equal={"/id": "/result/id"})
LOOKUP = TOOLS["orders.lookup"].evolve(verifier=Verifier(name="read_back", read_back=BACK))
ALL = TOOLS | {READER.name: READER}


def reading(run: Simulation) -> CallTool:
    """The reader's call."""
    (effect,) = run.open.values()
    assert isinstance(effect, CallTool)
    assert effect.tool == READER.name
    return effect


def two_looked_up(**more: Any) -> Simulation:
    """A run that has looked two orders up, and has asked the reader of the first."""
    run = loop(tools=ALL | {LOOKUP.name: LOOKUP}, **more)
    run.reply((LOOKUP.name, {"id": "A"}), (LOOKUP.name, {"id": "B"}))
    run.answer({"id": "A"})
    run.answer({"id": "B"})
    return run


def asked_of_readers(run: Simulation) -> list[str]:
    """The calls that a reader was asked about, in order."""
    return [one.call for one in run.asked if isinstance(one, CallTool) and one.tool == READER.name]


@proves("R-TOOL-12", part="every call of a batch is read back")
def test_every_call_of_a_batch_is_read_back() -> None:
    run = two_looked_up()
    asked = []
    for _ in range(2):
        asked.append(orjson.loads(run.contents[reading(run).arguments]))
        run.answer(asked[-1])
    assert asked == [{"id": "A"}, {"id": "B"}]
    assert [said.verdict for said in run.said("call_verified")] == ["verified"] * 2
    assert [(fact.tool, fact.validator) for fact in run.state.facts.values()] == [
        (LOOKUP.name, "read_back"),
        (LOOKUP.name, "read_back"),
    ]


def test_one_that_does_not_stand_leaves_the_others_to_be_read() -> None:
    run = two_looked_up()
    reading(run)
    run.answer({"id": "C"})
    reading(run)
    run.answer({"id": "B"})
    assert [said.verdict for said in run.said("call_verified")] == ["failed", "verified"]


def refunded(*, after_ms: int = 10, **limits: Any) -> Simulation:
    """A run that has made a refund, which took so long, and has asked its reader."""
    run = loop(tools=ALL, **limits)
    run.reply(("payments.refund", {"id": "R", "amount": "1"}))
    decide(run, "approve")
    (effect,) = run.open.values()
    body = run.keep({"id": "R"})
    run.feed(ToolAnswered(at=run.now, effect=effect.id, observation=body, size=10), after_ms=after_ms)
    return run


@proves("R-TOOL-12", part="a change is read back though the time is over")
@pytest.mark.parametrize("after_ms", [59_000, 60_005])
def test_a_change_is_read_back_in_its_readers_own_time(after_ms: int) -> None:
    run = refunded(after_ms=after_ms)
    assert reading(run).timeout_ms == READER.timeout_ms
    run.feed(
        ToolAnswered(at=run.now, effect=reading(run).id, observation=run.keep({"id": "R"}), size=10),
        after_ms=2_000,
    )
    assert [said.verdict for said in run.said("call_verified")] == ["verified"]
    assert (run.open, run.state.outcome) == ({}, TerminalCode.TIMEOUT)


def test_what_changed_nothing_is_read_back_in_what_is_left_of_the_runs_time() -> None:
    run = loop(tools=ALL | {LOOKUP.name: LOOKUP})
    run.reply((LOOKUP.name, {"id": "A"}))
    (effect,) = run.open.values()
    body = run.keep({"id": "A"})
    run.feed(ToolAnswered(at=run.now, effect=effect.id, observation=body, size=10), after_ms=59_000)
    assert reading(run).timeout_ms < 1_000 < READER.timeout_ms


@proves("R-TRACE-2", part="what is observed is said, whatever becomes of what would come next")
@pytest.mark.parametrize("why", ["budget", "stop"])
def test_what_the_reader_said_is_told_though_it_may_not_be_asked_again(why: str) -> None:
    run = refunded(**({"tool_calls": 2} if why == "budget" else {}))
    effect = reading(run)
    if why == "stop":
        run.feed(StopAsked(at=run.now, scope="tenant", target="", reason="Look into it."))
    run.feed(ToolFailed(at=run.now, effect=effect.id, error="timeout", sent=True, transient=True))
    assert run.open == {}
    observed = run.said("call_observed")[-1]
    assert (observed.effect, observed.status) == (effect.id, "timeout")
    # And nothing is said of a call that was not made.
    attempted = {said.effect for said in run.said("call_attempted")}
    assert attempted == {one.id for one in run.asked if isinstance(one, CallTool)}


def test_a_run_that_waits_for_more_budget_between_two_readers_reads_nothing_twice() -> None:
    run = two_looked_up(tool_calls=3, boundary=BOUNDARY.evolve(on_exhaustion="request", budget_requests=2))
    run.answer({"id": "A"})
    (asked,) = run.requests
    assert run.open == {}
    run.feed(
        GateDecided(
            at=run.now, request=str(asked.request), decision="extend", decision_digest=NIL, by="somebody",
            role="admin", packet_digest=asked.packet_digest, amounts={"tool_calls": Decimal(10)},
        )
    )  # fmt: skip
    reading(run)
    run.answer({"id": "B"})
    assert asked_of_readers(run) == [call.call for call in run.said("call_verified")]
    assert [said.verdict for said in run.said("call_verified")] == ["verified"] * 2


WISHES: dict[str, Any] = {
    "pause": lambda run: Paused(at=run.now, by="somebody", reason="Wait."),
    "cancel": lambda run: CancelAsked(at=run.now, by="somebody", reason="Enough."),
}


@proves("R-SESS-9", part="held between two readers")
@pytest.mark.parametrize("wish", ["pause", "cancel", "slice"])
def test_no_further_reader_is_asked_of_a_run_that_is_to_hold(wish: str) -> None:
    run = two_looked_up()
    first = reading(run)
    if wish in WISHES:
        run.feed(WISHES[wish](run))
    body = run.keep({"id": "A"})
    run.feed(
        ToolAnswered(at=run.now, effect=first.id, observation=body, size=1),
        Headroom(slice_over=wish == "slice"),
    )
    assert len(asked_of_readers(run)) == 1
    if wish == "cancel":
        assert run.state.outcome is TerminalCode.USER_CANCEL
        return
    assert run.state.held
    run.feed(Resumed(at=run.now, by="somebody") if wish == "pause" else TimerFired(at=run.now))
    reading(run)
    run.answer({"id": "B"})
    assert [said.verdict for said in run.said("call_verified")] == ["verified"] * 2
