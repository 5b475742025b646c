"""What a workflow asks of a typed answer: its form, and that it says what was read and done."""

from typing import Any

import orjson
import pytest

from orchestrator import bundled_content
from orchestrator.core.common.goal import Goal
from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.compiler.compiler import compile_graph
from orchestrator.core.domain.effects import AskApproval, CallModel
from orchestrator.core.domain.run_events import GateDecided
from orchestrator.tools.gateways.registry import shipped_tools
from tests.core.orchestrator.simulation import NIL, Simulation, manifest, pins
from tests.proves import proves

TOOLS = {name: tool.spec for name, tool in shipped_tools().items() if name.startswith("services.")}
LIMITS = {
    "model_turns": 20, "tool_calls": 20, "steps": 20, "external_calls": 20, "input_tokens": 500_000,
    "output_tokens": 50_000, "cost_usd": 1, "wall_clock_seconds": 60, "retries": 2, "side_effects": 0,
    "granted_side_effects": 2, "transitions": 2_000,
}  # fmt: skip
NAME = "checkout"
STATUS = {
    "name": NAME, "status": "down", "healthy": False, "version": "1", "instance": "checkout-1", "restarts": 0,
    "started_at": "2026-03-14T09:00:00Z", "depends_on": [], "failing_dependencies": [],
}  # fmt: skip
WELL = STATUS | {"status": "healthy", "healthy": True, "instance": "checkout-2"}
RESTARTED = {
    "id": "RS-000001",
    "service": NAME,
    "instance": "checkout-2",
    "reason": "It hangs.",
    "key": "k",
    "at": "now",
}


def triage(**goal: Any) -> Simulation:
    """An incident of which the status was read: fact f1 says that the checkout is down."""
    graph = compile_graph(bundled_content.get_bundled_workflow("incident-triage"))
    held = pins(TOOLS, bundled_content.get_bundled_boundary("incident-triage"), ("incident-triage",))
    asked = Goal(objective="What is wrong?", inputs={"service": NAME}, **goal)
    run = Simulation.of(graph, manifest(graph, held, LIMITS, asked))
    run.start()
    run.reply(("services.status", {"service": NAME}))
    run.answer(STATUS)
    return run


def said(**changes: Any) -> str:
    """A diagnosis that is right about f1, with these changes."""
    evidence = [{"claim": "It is down.", "facts": ["f1"]}]
    right = {
        "service": NAME, "status": "down", "healthy": False, "cause": "Unknown.", "evidence": evidence,
        "action": "none", "next_step": "Look on.",
    }  # fmt: skip
    return orjson.dumps(right | changes).decode()


def feedback(run: Simulation) -> str:
    """What the model was told was wrong with its last answer."""
    effect = next(effect for effect in run.open.values() if isinstance(effect, CallModel))
    text: str = orjson.loads(run.contents[effect.request])["messages"][-1]["text"]
    return text if text.startswith("CHECKS FAILED") else ""


def decide(run: Simulation, decision: str) -> None:
    (asked,) = [request for request in run.requests if isinstance(request, AskApproval)]
    event = GateDecided(
        at=run.now, request=str(asked.request), decision=decision, decision_digest=NIL, by="x",
        role="reviewer", packet_digest=asked.packet_digest,
    )  # fmt: skip
    run.feed(event)


def restarted() -> Simulation:
    """The same, after a restart that was approved, made and read back."""
    run = triage()
    run.reply(("services.restart", {"service": NAME, "reason": "It hangs."}))
    decide(run, "approve")
    run.answer(RESTARTED)
    run.answer(WELL)
    return run


def test_a_right_diagnosis_passes() -> None:
    run = triage()
    run.reply(text=said())
    assert run.state.outcome is TerminalCode.SUCCESS


@proves("R-LOOP-6", part="typed answers")
@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"healthy": True, "status": "healthy"}, "/status is not 'down'"),
        ({"status": "degraded"}, "/status is not 'down'"),
        ({"service": "stock"}, "services.status was never read for stock"),
        ({"action": "restarted"}, "the answer says that services.restart was done; no fact shows it"),
        ({"evidence": [{"claim": "It is down.", "facts": ["f2"]}]}, "f2 is no committed fact"),
        ({"evidence": [{"claim": "It took 47 minutes.", "facts": ["f1"]}]}, "47 stands in no"),
        ({"evidence": []}, "/evidence"),
        ({"evidence": [{"claim": "It is down.", "facts": [["f1"]]}]}, "/evidence/0/facts/0"),
        ({"action": "prayed"}, "/action"),
    ],
)
def test_a_wrong_one_is_sent_back_with_its_fault(changes: dict[str, Any], fault: str) -> None:
    run = triage()
    run.reply(text=said(**changes))
    assert fault in feedback(run)
    run.reply(text=said())
    assert run.state.outcome is TerminalCode.SUCCESS


@pytest.mark.parametrize("text", ["All is well.", "[]", "null", '"text"', "{}", '{"evidence": 1}'])
def test_what_is_no_diagnosis_at_all_ends_typed(text: str) -> None:
    run = triage()
    for _ in range(3):
        run.reply(text=text)
    assert run.state.outcome is TerminalCode.VALIDATION_FAIL


@proves("R-TOOL-12", part="described only after it was read again")
def test_after_a_restart_the_old_status_does_not_do() -> None:
    run = restarted()
    run.reply(text=said(action="restarted"))
    assert "services.status must be read again after services.restart" in feedback(run)
    run.reply(("services.status", {"service": NAME}))
    run.answer(WELL)
    run.reply(text=said(action="none", status="healthy", healthy=True))
    assert "services.restart was done; the answer must say so at /action" in feedback(run)
    run.reply(text=said(action="restarted", status="healthy", healthy=True))
    assert run.state.outcome is TerminalCode.SUCCESS


def test_a_refusal_makes_the_diagnosis_a_part() -> None:
    run = triage()
    run.reply(("services.restart", {"service": NAME, "reason": "It hangs."}))
    decide(run, "reject")
    run.reply(text=said(action="refused"))
    assert run.state.outcome is TerminalCode.PARTIAL_SUCCESS


@proves("R-GRAPH-13", part="both forms hold")
def test_a_goal_may_ask_for_more_than_the_workflow() -> None:
    run = triage(output_schema={"properties": {"cause": {"minLength": 20}}})
    run.reply(text=said())
    assert "/cause" in feedback(run)
    run.reply(text=said(status="well", cause="A cause of enough words."))
    assert "/status" in feedback(run)
    run.reply(text=said(cause="A cause of enough words."))
    assert run.state.outcome is TerminalCode.SUCCESS
