"""Nothing of a goal is accepted and then forgotten (R-GRAPH-13)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import orjson
import pytest

from orchestrator.core.admission.errors import GoalInvalid
from orchestrator.core.admission.run_admission import limits_for
from orchestrator.core.common.goal import Criterion, Goal, Mode
from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.domain.effects import CallModel, CallTool
from orchestrator.core.domain.run_events import TimerFired
from tests.core.orchestrator.loops import BOUNDARY, GRAPH, loop
from tests.core.orchestrator.simulation import START, Simulation
from tests.proves import proves


def run_of(**field: Any) -> Simulation:
    """A loop whose goal says this as well."""
    return loop(goal=Goal(**({"objective": "Find the order."} | field)))


def request(run: Simulation) -> dict[str, Any]:
    """What the model is asked at the moment."""
    effect = next(effect for effect in run.open.values() if isinstance(effect, CallModel))
    found: dict[str, Any] = orjson.loads(run.contents[effect.request])
    return found


def prompt_says(wanted: str, **field: Any) -> None:
    assert wanted not in orjson.dumps(request(run_of())).decode()
    assert wanted in request(run_of(**field))["messages"][0]["text"]


def objective() -> None:
    prompt_says("GOAL\nMind the gap.", objective="Mind the gap.")


def acceptance() -> None:
    criterion = Criterion(validator="contains", parameters={"text": "voucher"})
    prompt_says('- contains {"text":"voucher"}', acceptance=(criterion,))
    run = run_of(acceptance=(criterion,))
    run.reply(text="Here is your order.")
    assert "voucher" in orjson.dumps(request(run)["messages"][-1]).decode()


def constraints() -> None:
    prompt_says("CONSTRAINTS\n- Only this year.", constraints=("Only this year.",))


def inputs() -> None:
    prompt_says('INPUTS (json)\n{"order":"A-7"}', inputs={"order": "A-7"})


def output_schema() -> None:
    schema = {"type": "object", "required": ["total"]}
    run = run_of(output_schema=schema)
    assert request(run)["output_schema"] == schema
    run.reply(text='{"sum": 1}')
    assert "total" in orjson.dumps(request(run)["messages"][-1]).decode()


def done_condition() -> None:
    prompt_says("DONE WHEN\nThe order is named.", done_condition="The order is named.")


def validation_method() -> None:
    prompt_says("CHECKED BY\nAsking the shop.", validation_method="Asking the shop.")


def stop_rules() -> None:
    prompt_says("STOP IF\n- It is a gift.\n- It is lost.", stop_rules=("It is a gift.", "It is lost."))


def deadline() -> None:
    run = run_of(deadline=START + timedelta(seconds=2))
    run.reply(("orders.lookup", {"id": "A-1"}))
    (call,) = [effect for effect in run.open.values() if isinstance(effect, CallTool)]
    assert call.timeout_ms < 2_000
    run.now += timedelta(seconds=2)
    run.feed(TimerFired(at=run.now))
    run.answer({"total": "20.00"})
    assert run.state.outcome is TerminalCode.TIMEOUT


def mode() -> None:
    run = run_of()
    held = run.manifest.pins.evolve(boundary=BOUNDARY.evolve(budget={"wall_clock_seconds": None}))
    limits_for(GRAPH, held, run.manifest.goal, {})
    with pytest.raises(GoalInvalid, match="long_running"):
        limits_for(GRAPH, held, run.manifest.goal.evolve(mode=Mode.LONG_RUNNING), {})


def requires_human_approval() -> None:
    run = run_of(requires_human_approval=True)
    run.reply(text="Here is your order.")
    assert run.state.outcome is TerminalCode.REVIEW_REQUIRED


REACHES: list[Callable[[], None]] = [
    objective, acceptance, constraints, inputs, output_schema, done_condition, validation_method, stop_rules,
    deadline, mode, requires_human_approval,
]  # fmt: skip


@proves("R-GRAPH-13", part="every field")
@pytest.mark.parametrize("reaches", REACHES, ids=lambda reaches: reaches.__name__)
def test_each_field_of_the_goal_reaches_what_needs_it(reaches: Callable[[], None]) -> None:
    reaches()


def test_no_field_of_the_goal_is_left_out_above() -> None:
    assert [reaches.__name__ for reaches in REACHES] == list(Goal.model_fields)


@proves("R-GRAPH-13", part="figures")
def test_a_figure_of_the_goals_own_words_is_grounded() -> None:
    run = run_of(done_condition="At least 37 are found.")
    run.reply(text="There are 37.")
    assert run.state.outcome is TerminalCode.SUCCESS
