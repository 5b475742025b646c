"""An answer that does not fit its tool's declared form: kept, and the tool called no further (R-TOOL-14)."""

from typing import Any

import orjson
import pytest

from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.domain.effects import CallModel
from tests.core.orchestrator.loops import TOOLS, loop
from tests.core.orchestrator.simulation import Simulation
from tests.proves import proves

FORM = {"type": "object", "properties": {"total": {"type": "string"}}, "required": ["total"]}
STRICT = TOOLS | {"orders.lookup": TOOLS["orders.lookup"].evolve(output_schema=FORM)}
ASKED = ("orders.lookup", {"id": "A-1"})


def drifted(answer: Any = None, **more: Any) -> Simulation:
    run = loop(tools=STRICT, **more)
    run.reply(ASKED)
    run.answer({"sum": 20} if answer is None else answer)
    return run


def shown(run: Simulation) -> list[str]:
    """The tools that the newest prompt shows."""
    ask = next(effect for effect in reversed(run.asked) if isinstance(effect, CallModel))
    return [tool["name"] for tool in orjson.loads(run.contents[ask.request])["tools"]]


@proves("R-TOOL-14", part="the path is halted and the payload kept")
@pytest.mark.parametrize("answer", [{"sum": 20}, b"<html>sorry</html>", b""])
def test_the_tool_is_called_no_further(answer: Any) -> None:
    run = drifted(answer)
    (said,) = run.said("parser_drifted")
    assert said.tool == "orders.lookup"
    assert run.contents[said.observation] == (answer if isinstance(answer, bytes) else b'{"sum":20}')
    assert run.state.facts == {}
    assert shown(run)
    assert "orders.lookup" not in shown(run)
    run.reply(("orders.lookup", {"id": "A-2"}))
    assert [b.rule for b in run.said("call_checked") if b.decision == "deny"] == ["parser_drift"]
    assert [e for e in run.asked if e.kind == "call_tool"][1:] == []


def test_what_fits_is_no_drift() -> None:
    run = drifted({"total": "20.00"})
    assert (run.said("parser_drifted"), run.state.drifted) == ([], ())
    run.reply(text="Done.")
    assert run.state.outcome is TerminalCode.SUCCESS
