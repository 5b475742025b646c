"""A change that surely did not happen is sent again, as often as its retry policy says (R-TOOL-10)."""

import pytest

from orchestrator.core.effects import CallTool
from orchestrator.core.events import LOOKED, Recovered, TimerFired
from tests.core.orchestrator.loops import TOOLS, loop
from tests.core.orchestrator.simulation import Simulation
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


def test_a_run_of_an_earlier_core_goes_on_as_it_did() -> None:
    run = found_absent(ABSENT, 0)
    run.manifest = run.manifest.evolve(core_version=4)
    for _ in range(4):
        (effect,) = [one for one in run.open.values() if isinstance(one, CallTool)]
        run.feed(Recovered(at=run.now, effect=effect.id, resolution="abandoned", detail=ABSENT))
        run.feed(TimerFired(at=run.now), after_ms=6_000)
    assert sent(run) == 5
