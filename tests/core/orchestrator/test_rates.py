"""How often a minute a tool may be called: the window, and what the model is told (R-TOOL-5)."""

from datetime import timedelta

import orjson
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.common.sliding_window import EMPTY, GRAIN, SPAN, Window, wait_for, with_counted_call
from orchestrator.core.domain.effects import CallTool
from tests.core.orchestrator.loops import TOOLS, loop
from tests.core.orchestrator.simulation import START, Simulation
from tests.core.orchestrator.test_loop import decide
from tests.proves import proves

SLOW = TOOLS | {"orders.lookup": TOOLS["orders.lookup"].evolve(rate_per_minute=2)}


def look_up(run: Simulation, *orders: str) -> None:
    run.reply(*(("orders.lookup", {"id": order}) for order in orders))


def flying(run: Simulation) -> int:
    return sum(isinstance(effect, CallTool) for effect in run.open.values())


def answer_all(run: Simulation) -> None:
    while flying(run):
        run.answer({"total": "20.00"})


@proves("R-TOOL-5", part="rate limit")
@proves("R-TOOL-1", part="rate limit")
def test_a_call_beyond_the_rate_is_denied_and_told_when_it_may_come_again() -> None:
    run = loop(tools=SLOW)
    look_up(run, "A-1", "A-2", "A-3")
    assert flying(run) == 2
    answer_all(run)
    refused = run.said("call_not_run")[0]
    assert refused.status == "denied"
    assert refused.detail == (
        "orders.lookup takes 2 calls a minute; "
        f"it may be called again at {(START + timedelta(seconds=65)).isoformat()}"
    )
    checked = [(body.step, body.decision, body.rule) for body in run.said("call_checked")]
    assert checked[-1] == ("budget", "deny", "rate_limit")
    assert orjson.loads(run.contents[refused.result])["detail"] == refused.detail


@proves("R-TOOL-5", part="rate limit passes")
def test_after_its_minute_the_tool_may_be_called_again() -> None:
    run = loop(tools=SLOW, wall_clock_seconds=600)
    look_up(run, "A-1", "A-2")
    answer_all(run)
    run.now += timedelta(seconds=58)
    look_up(run, "A-3")
    assert flying(run) == 0
    run.now += timedelta(seconds=7)
    look_up(run, "A-3")
    assert flying(run) == 1


def test_a_read_back_counts_as_a_call_of_its_reader() -> None:
    run = loop()
    run.reply(("payments.refund", {"amount": "20.00", "id": "A-1"}))
    decide(run, "approve")
    run.answer({"id": "R-1"})
    counted = {tool: sum(window.values()) for tool, window in run.state.rates.items()}
    assert counted == {"payments.refund": 1, "payments.find": 1}


@proves("R-TOOL-5", part="no minute above the rate")
@given(
    rate=st.integers(1, 5), gaps=st.lists(st.integers(0, 40), max_size=60), grain=st.sampled_from([1, GRAIN])
)
def test_no_minute_holds_more_calls_than_the_rate(rate: int, gaps: list[int], grain: int) -> None:
    window: Window = EMPTY
    now, made = 1_000, list[int]()
    for gap in gaps:
        now += gap
        wait = wait_for(window, rate, now, grain=grain)
        if wait:
            # The promise is kept: what was told is when it may come again, and not a second before.
            assert wait_for(window, rate, now + wait, grain=grain) == 0
            assert wait_for(window, rate, now + wait - 1, grain=grain) == 1
        else:
            window = with_counted_call(window, now, grain=grain)
            made.append(now)
    assert len(window) <= SPAN // grain + 2
    assert all(sum(start <= moment <= start + SPAN - 1 for moment in made) <= rate for start in made)
