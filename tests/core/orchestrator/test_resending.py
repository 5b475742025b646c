"""A change that surely did not happen is sent again, as often as its retry policy says (R-TOOL-10)."""

from decimal import Decimal

import pytest

from orchestrator.core.domain.effects import CallTool
from orchestrator.core.domain.run_events import LOOKED, Recovered, TimerFired
from tests.core.orchestrator.loops import BOUNDARY, TOOLS, loop
from tests.core.orchestrator.simulation import Simulation
from tests.core.orchestrator.test_conflicts import POST
from tests.proves import proves

ABSENT = f"{LOOKED}: not there"


def found_absent(said: str, times: int, *, retries: int = 2, unsent: int = 0) -> Simulation:
    """A run whose call did surely not happen so many times in a row, after so many that no worker sent."""
    tools = {**TOOLS, "orders.lookup": TOOLS["orders.lookup"].evolve(max_retries=retries)}
    run = loop(tools=tools)
    run.reply(("orders.lookup", {"id": "A-1"}))
    for detail in ("",) * unsent + (said,) * times:
        (effect,) = [one for one in run.open.values() if isinstance(one, CallTool)]
        run.feed(Recovered(at=run.now, effect=effect.id, resolution="abandoned", detail=detail))
        run.feed(TimerFired(at=run.now), after_ms=6_000)
    return run


def sent(run: Simulation) -> int:
    """How often the call was made."""
    return sum(isinstance(effect, CallTool) for effect in run.asked)


@proves("R-TOOL-10", part="a resend after a conclusive look-up")
@pytest.mark.parametrize(("retries", "sends"), [(0, 2), (1, 2), (2, 3)])
def test_what_a_look_up_never_finds_is_sent_as_often_as_its_policy_says(retries: int, sends: int) -> None:
    run = found_absent(ABSENT, sends, retries=retries)
    assert sent(run) == sends
    assert [failure.error for failure in run.state.failures] == ["unreachable"]
    assert run.said("breaker_tripped")[-1].breaker == "retry_storm"


@proves("R-TOOL-10", part="only what was sent counts as sent")
@pytest.mark.parametrize("unsent", [1, 3])
def test_what_no_worker_sent_leaves_its_sends_to_what_follows(unsent: int) -> None:
    assert found_absent(ABSENT, 1, retries=1, unsent=unsent).state.failures == ()
    run = found_absent(ABSENT, 2, retries=1, unsent=unsent)
    assert (sent(run), [failure.error for failure in run.state.failures]) == (unsent + 2, ["unreachable"])


def test_what_no_worker_sent_is_no_attempt_of_the_tool() -> None:
    run = found_absent("", 4)
    assert (sent(run), run.state.failures) == (5, ())


def used(said: str) -> dict[str, Decimal]:
    """What is counted of one priced change outside that surely did not happen, and was made after all."""
    note = POST.evolve(external=True, price_usd=Decimal("0.1"))
    tools = TOOLS | {note.name: note}
    run = loop(tools=tools, graph_tools=tuple(tools), boundary=BOUNDARY, side_effects=9)
    run.reply((note.name, {"order": "A-1"}))
    (effect,) = run.open.values()
    run.feed(Recovered(at=run.now, effect=effect.id, resolution="abandoned", detail=said))
    run.feed(TimerFired(at=run.now), after_ms=6_000)
    run.answer({"id": "n1"})
    names = ("steps", "tool_calls", "external_calls", "cost_usd", "side_effects")
    return {name: run.state.usage.get(name, Decimal(0)) for name in names}


@proves("R-BUDGET-1", part="calls, failed ones included")
@pytest.mark.parametrize(("said", "calls"), [(ABSENT, 2), ("", 1)])
def test_a_change_that_surely_did_not_happen_counts_as_what_it_was(said: str, calls: int) -> None:
    cost = Decimal("0.1") * calls
    counted = {"tool_calls": calls, "external_calls": calls, "cost_usd": cost}
    assert used(said) == {"steps": 1, "side_effects": 1, **counted}


@proves("R-BUDGET-16", part="the step of a call that was made again")
def test_calls_that_nobody_sent_at_first_pass_no_limit_of_steps() -> None:
    run = loop(steps=1)
    for order in ("A-1", "A-2"):
        run.reply(("orders.lookup", {"id": order}))
        for effect in run.open.values():
            run.feed(Recovered(at=run.now, effect=effect.id, resolution="abandoned"))
            run.feed(TimerFired(at=run.now), after_ms=6_000)
            run.answer({"total": order})
    assert (len(run.state.facts), run.state.reason) == (1, "steps")
