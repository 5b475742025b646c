"""A workflow that starts itself is refused; a reply of any size cannot pass its reservation (B7, B1)."""

from decimal import Decimal
from typing import get_args

from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.domain.effects import CallModel, CallTool, Effect
from tests.core.orchestrator.loops import loop
from tests.proves import proves


@proves("B7")
def test_a_model_that_asks_for_its_own_workflow_starts_nothing() -> None:
    run = loop()
    while run.state.outcome is None:
        run.reply(("tool-loop", {"objective": "the same again"}), ("tasks.submit", {"workflow": "tool-loop"}))
    assert [effect for effect in run.asked if isinstance(effect, CallTool)] == []
    refused = {body.status for body in run.said("call_not_run")}
    assert refused == {"unregistered"}
    assert len([effect for effect in run.asked if isinstance(effect, CallModel)]) <= 12


@proves("B7", part="no effect starts a run")
def test_nothing_a_run_can_ask_of_the_world_is_another_run() -> None:
    kinds = {kind.model_fields["kind"].default for kind in get_args(Effect)}
    assert kinds == {"call_model", "call_tool", "ask_approval", "ask_person", "set_timer", "finish"}


@proves("B1", part="a reply of 200 000 tokens")
def test_a_reply_of_any_size_is_bounded_by_what_was_reserved_for_it() -> None:
    run = loop(output_tokens=5_000)
    effect = next(e for e in run.asked if isinstance(e, CallModel))
    assert effect.max_output_tokens <= 5_000
    assert effect.reserve["output_tokens"] == effect.max_output_tokens
    claimed = {"input_tokens": Decimal(50), "output_tokens": Decimal(200_000)}
    run.feed(run.model_reply(effect, ("orders.lookup", {"id": "A-1"})).evolve(usage=claimed))
    run.answer({"total": "20.00"})
    assert run.state.outcome is TerminalCode.UNAVAILABLE_DEP
    assert len([e for e in run.asked if isinstance(e, CallModel)]) == 1
