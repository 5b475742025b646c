"""The wall clock is a breaker like the others: it says when it trips (R-BUDGET-12)."""

from orchestrator.core.common.run_status import TerminalCode
from tests.core.orchestrator.loops import loop
from tests.proves import proves


@proves("R-BUDGET-12", part="wall clock event")
def test_the_wall_clock_says_that_it_tripped() -> None:
    run = loop(wall_clock_seconds=60)
    run.reply(("orders.lookup", {"id": "A-1"}), text="")
    run.feed(run.fed[-1][1], after_ms=61_000)
    run.answer({"total": "20.00"})
    assert run.state.outcome is TerminalCode.TIMEOUT
    (tripped,) = run.said("breaker_tripped")
    assert (tripped.breaker, tripped.reason, tripped.limit) == ("wall_clock", "wall_clock", 60)
