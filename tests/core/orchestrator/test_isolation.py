"""The decision `sandbox`: a call that may be made in isolation alone is made so, or not at all."""

from orchestrator.core.common.argument_parsing import validate_against_schema
from orchestrator.core.domain.boundary import ToolGrant
from orchestrator.core.domain.effects import CallModel
from orchestrator.core.domain.run_events import Headroom
from orchestrator.core.domain.tool_spec import Risk, ToolSpec
from orchestrator.core.tools.isolation import as_granted, with_isolation
from tests.core.orchestrator.loops import BOUNDARY, TOOLS, loop
from tests.core.orchestrator.simulation import Simulation
from tests.proves import proves

APART = BOUNDARY.evolve(
    tools=(ToolGrant(name="payments.refund", sandbox=True), ToolGrant(name="payments.*"), *BOUNDARY.tools)
)
REFUND = TOOLS["payments.refund"].evolve(isolation="copy", facts={"id": "/id"})


def run_with(refund: ToolSpec) -> Simulation:
    """A run under a boundary that lets refunds be made in isolation alone, pinned as pinning does it."""
    tools = {**TOOLS, "payments.refund": refund}
    return loop(boundary=APART, tools={name: as_granted(tool, APART) for name, tool in tools.items()})


@proves("R-TOOL-5", part="sandbox, without a person")
def test_a_call_apart_asks_nobody_and_its_result_is_marked() -> None:
    run = run_with(REFUND)
    run.reply(("payments.refund", {"amount": 900}))
    assert run.requests == []
    checked = {body.step: body for body in run.said("call_checked")}
    assert (checked["risk"].decision, checked["risk"].rule) == ("sandbox", "boundary_sandbox")
    assert checked["risk"].boundary == run.manifest.pins.boundary_digest
    run.answer({"id": "r1", "isolated": True})
    (fact,) = run.state.facts.values()
    assert fact.values["isolated"] is True
    assert run.state.usage.get("granted_side_effects", 0) == 0


@proves("R-TOOL-5", part="an unmarked result of a sandbox is none")
def test_a_result_without_its_mark_is_no_result_of_isolation() -> None:
    run = run_with(REFUND)
    run.reply(("payments.refund", {"amount": 900}))
    run.answer({"id": "r1"})
    assert run.state.facts == {}


@proves("R-TOOL-5", part="no isolation is deny")
def test_a_tool_that_cannot_be_called_apart_is_denied_under_such_a_grant() -> None:
    run = run_with(TOOLS["payments.refund"])
    run.reply(("payments.refund", {"amount": 9}))
    (denied,) = [body for body in run.said("call_checked") if body.decision == "deny"]
    assert (denied.step, denied.rule) == ("permitted", "boundary_sandbox")
    assert run.said("call_attempted") == []


@proves("R-TOOL-5", part="no sandbox is deny")
@proves("R-LOOP-21", part="not eligible, and the run says so")
def test_what_the_machine_lacks_is_said_and_the_call_denied() -> None:
    run = run_with(REFUND)
    room = Headroom(unavailable={"payments.refund": "bubblewrap is not installed on this machine"})
    asked = next(effect for effect in run.open.values() if isinstance(effect, CallModel))
    run.feed(run.model_reply(asked, ("payments.refund", {"amount": 9})), room)
    (denied,) = [body for body in run.said("call_checked") if body.decision == "deny"]
    assert (denied.step, denied.rule) == ("permitted", "not_available")
    assert "bubblewrap is not installed" in denied.detail


def test_the_form_apart_reads_only_and_keeps_the_rest() -> None:
    found = with_isolation(REFUND)
    assert (found.risk, found.is_mutating, found.needs_gate, found.compensation) == (
        Risk.READ_ONLY,
        False,
        False,
        None,
    )
    assert found.verifier is None
    assert (found.name, found.input_schema) == (REFUND.name, REFUND.input_schema)
    assert validate_against_schema(found.output_schema, {"isolated": True}) is None
    assert validate_against_schema(found.output_schema, {"isolated": False}) is not None
    assert as_granted(REFUND, BOUNDARY) is REFUND
