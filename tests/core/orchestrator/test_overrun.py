"""A provider that takes more than was reserved is flagged, and asked for nothing more (R-BUDGET-2)."""

from decimal import Decimal

from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.domain.effects import CallModel
from tests.core.orchestrator.loops import loop
from tests.core.orchestrator.simulation import Simulation
from tests.proves import proves


def overrun(run: Simulation, *calls: tuple[str, object], text: str = "") -> CallModel:
    """Answer the open model call, with more output than was reserved for it."""
    effect = next(e for e in run.open.values() if isinstance(e, CallModel))
    more = {
        "input_tokens": Decimal(50),
        "output_tokens": effect.reserve["output_tokens"] + 7,
    }
    run.feed(run.model_reply(effect, *calls, text=text).evolve(usage=more))
    return effect


@proves("R-BUDGET-2", part="profile flagged")
def test_an_overrun_flags_the_profile_and_trips_its_breaker() -> None:
    run = loop()
    effect = overrun(run, ("orders.lookup", {"id": "A-1"}))
    held = effect.reserve["output_tokens"]
    (tripped,) = run.said("breaker_tripped")
    assert (tripped.breaker, tripped.reason, tripped.subject) == ("circuit", "overrun", "m")
    assert (tripped.limit, tripped.actual) == (held, held + 7)
    assert run.said("budget_settled")[0].overrun == {"output_tokens": Decimal(7)}
    assert run.state.flagged == ("m",)


@proves("R-BUDGET-2", part="nothing more is reserved")
def test_a_flagged_profile_is_asked_for_nothing_more() -> None:
    run = loop()
    overrun(run, ("orders.lookup", {"id": "A-1"}))
    run.answer({"total": "20.00"})
    assert sum(isinstance(effect, CallModel) for effect in run.asked) == 1
    assert (run.state.outcome, run.state.reason) == (TerminalCode.UNAVAILABLE_DEP, "overrun")


def test_what_the_provider_took_is_said_even_where_the_node_would_ask_again() -> None:
    run = loop()
    overrun(run)
    assert run.state.outcome is TerminalCode.UNAVAILABLE_DEP
    assert [body.reason for body in run.said("breaker_tripped")] == ["overrun"]
    assert len(run.said("budget_settled")) == 1


def test_an_answer_that_took_too_much_is_still_an_answer() -> None:
    run = loop()
    overrun(run, text="Done.")
    assert run.state.outcome is TerminalCode.SUCCESS
    assert run.state.flagged == ("m",)
