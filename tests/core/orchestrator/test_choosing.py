"""The least tool for a call, and what stands in for one that cannot be reached (R-TOOL-7, R-TOOL-1)."""

from decimal import Decimal
from typing import Any

import orjson
import pytest

from orchestrator.core.domain.effects import CallModel, CallTool
from orchestrator.core.domain.run_events import Headroom, ToolFailed
from orchestrator.core.domain.tool_spec import Reversibility, Risk, ToolSpec
from tests.core.orchestrator.loops import TOOLS, loop
from tests.core.orchestrator.simulation import Simulation
from tests.proves import proves

DEAR = TOOLS["orders.lookup"].evolve(
    name="orders.search",
    capability="orders",
    price_usd=Decimal("0.05"),
    equivalents=("orders.other", "orders.lookup"),
)  # fmt: skip
PLAIN = TOOLS["orders.lookup"].evolve(capability="orders")
ASKED = {"id": "A-1"}


def run_over(*more: ToolSpec) -> Simulation:
    tools = TOOLS | {one.name: one for one in (DEAR, PLAIN, *more)}
    return loop(tools=tools, graph_tools=tuple(tools))


def ask(run: Simulation, tool: str = "orders.search", room: Headroom | None = None) -> list[str]:
    """The tools that are called once the model asks for one."""
    effect = next(e for e in run.open.values() if isinstance(e, CallModel))
    before = len(run.asked)
    run.feed(run.model_reply(effect, (tool, ASKED)), room)
    return [e.tool for e in run.asked[before:] if isinstance(e, CallTool)]


def denied_by(run: Simulation) -> list[str]:
    return [body.rule for body in run.said("call_checked") if body.decision == "deny"]


@proves("R-TOOL-7", part="the dearer call is rejected with a pointer")
def test_the_dearer_tool_is_not_called_and_the_model_told_which_is() -> None:
    run = run_over()
    assert ask(run) == []
    assert denied_by(run) == ["least_tool"]
    (told,) = run.said("call_not_run")
    assert "orders.lookup does the same for less" in orjson.loads(run.contents[told.result])["detail"]
    assert ask(run, "orders.lookup") == ["orders.lookup"]


@proves("R-TOOL-7", part="a local tool before one that asks the world")
def test_what_is_deterministic_comes_first() -> None:
    local = PLAIN.evolve(name="orders.table", local=True, external=False)
    run = run_over(local)
    assert ask(run, "orders.lookup") == []
    assert ask(run, "orders.table") == ["orders.table"]


@pytest.mark.parametrize(
    "room", [Headroom(stopped_tools=("orders.lookup",)), Headroom(open_circuits=("orders.lookup",))]
)
def test_a_tool_that_cannot_be_called_is_no_reason_to_refuse_another(room: Headroom) -> None:
    assert ask(run_over(), room=room) == ["orders.search"]


def test_a_cheaper_tool_that_failed_lets_the_dearer_one_go() -> None:
    run = run_over()
    ask(run, "orders.lookup")
    (effect,) = run.open.values()
    run.feed(ToolFailed(at=run.now, effect=effect.id, error="refused", sent=True, transient=False))
    assert ask(run) == ["orders.search"]


@proves("R-TOOL-1", part="an unavailable tool is replaced by an equivalent")
@pytest.mark.parametrize("how", ["stopped_tools", "open_circuits"])
def test_an_equivalent_stands_in_and_the_trace_says_so(how: str) -> None:
    run = run_over()
    room: Any = {how: ("orders.search",)}
    assert ask(run, room=Headroom(**room)) == ["orders.lookup"]
    (said,) = run.said("plan_repaired")
    assert (said.tool, said.by, said.reason) == ("orders.search", "orders.lookup", "unavailable")


RISKY = PLAIN.evolve(name="orders.other", risk=Risk.NETWORK, reversibility=Reversibility.REVERSIBLE)
OTHERWISE = PLAIN.evolve(name="orders.other", input_schema={"type": "object", "required": ["number"]})


@proves("R-TOOL-1", part="of no higher risk, and with the same arguments")
@pytest.mark.parametrize("other", [RISKY, OTHERWISE])
def test_an_equivalent_of_higher_risk_or_another_form_is_passed_over(other: ToolSpec) -> None:
    run = run_over(other)
    assert ask(run, room=Headroom(stopped_tools=("orders.search",))) == ["orders.lookup"]


@proves("R-TOOL-1", part="else it is unavailable")
def test_without_an_equivalent_the_tool_is_unavailable() -> None:
    run = run_over()
    assert ask(run, room=Headroom(stopped_tools=("orders.search", "orders.lookup"))) == []
    assert (denied_by(run), run.said("plan_repaired")) == (["emergency_stop"], [])
