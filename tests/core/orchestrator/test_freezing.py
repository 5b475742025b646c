"""An exhausted budget freezes the run where its boundary says so (R-BUDGET-6, R-BUDGET-7)."""

from decimal import Decimal
from typing import Any

import orjson
import pytest

from orchestrator.core.common.goal import Goal
from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.domain.effects import AskApproval, CallModel
from orchestrator.core.domain.run_events import (
    CancelAsked,
    GateDecided,
    GateExpired,
    Headroom,
    Paused,
    Resumed,
    TimerFired,
    ToolAnswered,
)
from tests.core.orchestrator.loops import BOUNDARY, loop
from tests.core.orchestrator.simulation import NIL, Simulation
from tests.proves import proves

LOOKUP = ("orders.lookup", {"id": "A-1"})
ASKING = BOUNDARY.evolve(on_exhaustion="request", budget_requests=2, escalation_routes={"budget": "treasury"})


def frozen() -> Simulation:
    """A run whose second model turn is refused, and that asks people for more."""
    run = loop(boundary=ASKING, model_turns=1)
    run.reply(LOOKUP)
    run.answer({"total": "20.00"})
    return run


def decide(run: Simulation, decision: str, **amounts: int) -> None:
    """People's word on the open request for budget."""
    (ask,) = run.requests
    run.feed(
        GateDecided(
            at=run.now, request=str(ask.request), decision=decision, decision_digest=NIL, by="somebody",
            role="reviewer", packet_digest=ask.packet_digest,
            amounts={name: Decimal(amount) for name, amount in amounts.items()},
        )
    )  # fmt: skip


@proves("R-BUDGET-6", part="a reply cut short asks for more")
def test_a_reply_that_the_budget_cut_short_is_asked_for_again_once_there_is_more() -> None:
    wide = asked(loop(boundary=ASKING)).reserve
    run = loop(boundary=ASKING, total_tokens=int(wide["input_tokens"]) + 80)
    first = asked(run)
    assert first.max_output_tokens < wide["output_tokens"]
    run.reply(text="do", finish="length")
    assert (run.state.frozen is not None, packet(run)["refused"]) == (True, "total_tokens")
    decide(run, "extend", total_tokens=200_000)
    again = asked(run)
    assert again.id != first.id
    assert again.reserve["output_tokens"] == wide["output_tokens"]
    run.reply(text="done")
    assert (run.state.outcome, run.state.partial) == (TerminalCode.SUCCESS, False)


def asked(run: Simulation) -> CallModel:
    """The open model call."""
    return next(effect for effect in run.open.values() if isinstance(effect, CallModel))


def packet(run: Simulation) -> dict[str, Any]:
    """The packet of the open request."""
    (ask,) = run.requests
    found: dict[str, Any] = orjson.loads(run.contents[ask.packet])
    return found


@proves("R-BUDGET-6", part="a budget request freezes the run")
def test_the_run_waits_with_its_state_and_its_clock_stands_still() -> None:
    run = frozen()
    (ask,) = run.requests
    assert isinstance(ask, AskApproval)
    assert (ask.request_kind, ask.queue, run.state.status) == ("budget", "treasury", "awaiting_gate")
    assert (run.state.position, list(run.state.facts)) == ("act", ["f1"])
    spent = run.state.usage["wall_clock_seconds"]
    run.feed(TimerFired(at=run.now), after_ms=10_000_000)
    decide(run, "extend", model_turns=3)
    assert run.state.usage["wall_clock_seconds"] - spent < 1
    assert run.said("interrupt_taken") == []


@proves("R-BUDGET-7", part="original less used plus granted")
def test_after_an_extension_the_run_goes_on_where_it_stood() -> None:
    run = frozen()
    decide(run, "extend", model_turns=3)
    assert run.state.limits["model_turns"] == 4
    assert [effect.kind for effect in run.open.values()] == ["call_model"]
    assert run.state.left("model_turns") == 1 - 1 + 3 - 1
    (extended,) = run.said("budget_extended")
    assert (extended.amounts, extended.by) == ({"model_turns": Decimal(3)}, "somebody")
    run.reply(text="The order stands.")
    assert run.state.outcome is TerminalCode.SUCCESS


@proves("R-APPR-2", part="a request for budget")
def test_the_packet_shows_every_limit_and_what_is_asked_of_the_one_that_was_reached() -> None:
    shown = packet(frozen())
    lines = {line["dimension"]: line for line in shown["budget"]}
    assert shown["refused"] == "model_turns"
    assert lines["model_turns"] | {"asked": "1"} == lines["model_turns"]
    assert {name: lines["model_turns"][name] for name in ("limit", "used", "left", "needed")} == {
        "limit": "1", "used": "1", "left": "0", "needed": "1",
    }  # fmt: skip
    assert (lines["tool_calls"]["used"], lines["tool_calls"]["asked"]) == ("1", "0")
    assert {"steps", "input_tokens", "output_tokens", "cost_usd", "wall_clock_seconds"} <= set(lines)
    assert not {"retries", "depth", "transitions"} & set(lines)
    assert "1 of its 1 model turns" in shown["why"]


@pytest.mark.parametrize("decision", ["reject", "expire"])
@proves("R-BUDGET-6", part="a no or no word ends it with what it has")
def test_without_more_the_run_ends_with_its_partial_result(decision: str) -> None:
    run = frozen()
    if decision == "expire":
        run.feed(GateExpired(at=run.now, request=str(run.requests[0].request)))
    else:
        decide(run, decision)
    assert run.state.outcome is TerminalCode.BUDGET_EXHAUSTED
    assert run.state.status == ("expired" if decision == "expire" else "failed")
    assert sum(isinstance(effect, CallModel) for effect in run.asked) == 1
    assert run.state.result is not None
    assert orjson.loads(run.contents[run.state.result])["output"] == {"f1": {"total": "20.00"}}


@proves("R-BUDGET-6", part="time is asked for too")
def test_a_run_out_of_working_time_asks_for_more_and_ends_in_a_timeout_without_it() -> None:
    run = loop(boundary=ASKING)
    effect = next(e for e in run.open.values() if isinstance(e, CallModel))
    run.feed(run.model_reply(effect, LOOKUP), after_ms=70_000)
    assert run.state.status == "awaiting_gate"
    assert packet(run)["refused"] == "wall_clock_seconds"
    decide(run, "extend", wall_clock_seconds=30)
    assert [effect.kind for effect in run.open.values()] == ["call_tool"]
    run.answer({"total": "20.00"})
    run.feed(run.model_reply(next(iter(run.open.values())), LOOKUP), after_ms=40_000)  # type: ignore[arg-type]
    decide(run, "reject")
    assert run.state.outcome is TerminalCode.TIMEOUT


@proves("R-BUDGET-6", part="before a tool call")
def test_a_call_that_cannot_be_paid_for_is_asked_about_before_it_is_made() -> None:
    run = loop(boundary=ASKING, tool_calls=1)
    run.reply(LOOKUP)
    run.answer({"total": "20.00"})
    run.reply(("orders.lookup", {"id": "A-2"}))
    assert run.state.status == "awaiting_gate"
    decide(run, "extend", tool_calls=1)
    assert [effect.kind for effect in run.open.values()] == ["call_tool"]


@proves("R-BUDGET-16", part="nobody is asked for what is forbidden")
def test_a_limit_of_zero_ends_the_run_with_the_reason_and_asks_nobody() -> None:
    run = loop(boundary=ASKING, external_calls=0)
    run.reply(LOOKUP)
    assert run.requests == []
    assert (run.state.outcome, run.state.reason) == (TerminalCode.BUDGET_EXHAUSTED, "external_calls")


@proves("R-BUDGET-16", part="nobody is asked for more of what is compared at use")
def test_a_prompt_beyond_its_limit_ends_the_run_with_the_reason_and_asks_nobody() -> None:
    run = loop(boundary=ASKING, context_tokens=10)
    assert run.requests == []
    assert (run.state.outcome, run.state.reason) == (TerminalCode.BUDGET_EXHAUSTED, "context_tokens")


@proves("R-BUDGET-10", part="the window that refused")
def test_a_refusal_by_the_tenants_ceiling_names_the_window_and_its_limit() -> None:
    room = Headroom(tenant_cost=Decimal(-1), tenant_window="tenant_month", tenant_limit=Decimal(50))
    run = loop(boundary=ASKING)
    run.reply(LOOKUP)
    call = next(iter(run.open.values()))
    answered = ToolAnswered(at=run.now, effect=call.id, observation=run.keep({"total": "20.00"}), size=10)
    run.feed(answered, room)
    refused = run.said("reservation_refused")[-1]
    assert (refused.account, refused.limit, refused.dimension) == ("tenant_month", 50, "cost_usd")


@proves("R-GRAPH-17", part="requests for budget are bounded")
def test_the_run_asks_a_bounded_number_of_times() -> None:
    run = frozen()
    for _ in range(2):
        decide(run, "extend", model_turns=1)
        run.reply(LOOKUP)
        if run.open:
            run.answer({"total": "20.00"})
    assert run.state.outcome is TerminalCode.BUDGET_EXHAUSTED
    assert len(run.said("approval_requested")) == 2


@proves("R-BUDGET-7", part="not beyond the tenant's ceiling")
def test_what_the_tenant_has_not_got_is_asked_of_nobody() -> None:
    run = loop(boundary=ASKING)
    effect = next(e for e in run.open.values() if isinstance(e, CallModel))
    run.feed(run.model_reply(effect, text="99"), Headroom(tenant_cost=Decimal(-1)))
    assert run.requests == []


@pytest.mark.parametrize("wish", ["cancel", "pause"])
def test_a_frozen_run_can_be_cancelled_and_paused(wish: str) -> None:
    run = frozen()
    if wish == "cancel":
        run.feed(CancelAsked(at=run.now, by="x", reason=""))
        assert run.state.outcome is TerminalCode.USER_CANCEL
        return
    run.feed(Paused(at=run.now, by="x", reason=""))
    decide(run, "extend", model_turns=3)
    assert (run.state.status, run.open) == ("paused", {})
    run.feed(Resumed(at=run.now, by="x"))
    assert [effect.kind for effect in run.open.values()] == ["call_model"]


def test_a_deadline_does_not_wait_for_people() -> None:
    run = frozen()
    due = run.now.replace(year=run.now.year + 1)
    run.manifest = run.manifest.evolve(goal=Goal(objective="x", deadline=due))
    run.feed(TimerFired(at=run.now), after_ms=400 * 86_400_000)
    assert (run.state.outcome, run.state.status) == (TerminalCode.TIMEOUT, "expired")


def test_the_same_events_freeze_and_thaw_to_the_same_bytes() -> None:
    first, second = frozen(), frozen()
    decide(first, "extend", model_turns=2)
    decide(second, "extend", model_turns=2)
    assert first.state == second.state
