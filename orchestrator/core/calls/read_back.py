"""Reading back: a read-only call that shows whether a change really stands (R-TOOL-12)."""

from orchestrator.core.accounting.effect_cost import call_reserve
from orchestrator.core.accounting.price_correction import undone_within
from orchestrator.core.calls.invocation import with_updated_call
from orchestrator.core.common.frozen_model import with_entry
from orchestrator.core.domain.effects import CallTool, idempotency_key
from orchestrator.core.domain.run_state import Call, PendingEffect, RunState
from orchestrator.core.domain.tool_spec import ReadBack, ToolSpec
from orchestrator.core.workflow.goal_inputs import MISSING, is_same_value, resolve_pointer
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from traces.core.canonical import canonical_outside, compute_digest
from traces.core.events.phases import Phase
from traces.core.events.trace_events import CallAttempted


def _get_read_back(view: NodeContext, call: Call) -> ReadBack:
    verifier = view.pins.by_name[call.tool].verifier
    assert verifier is not None
    assert verifier.read_back is not None
    return verifier.read_back


def reader_of(view: NodeContext, call: Call) -> ToolSpec:
    """The pinned tool that reads a call back."""
    return view.pins.by_name[_get_read_back(view, call).tool]


def read_back(view: NodeContext, state: RunState, call: Call, attempt: int) -> NodeResult:
    """Ask the reader; what it is asked comes from the call's arguments and result. That of a change has its
    tool's own time, though the run's may be over: it finishes what was begun, and changes nothing."""
    reader = _get_read_back(view, call)
    spec = view.pins.by_name[reader.tool]
    changed = view.pins.by_name[call.tool].is_mutating
    document = {
        "arguments": view.desk.json(call.arguments or ""),
        "result": view.desk.json(call.observation or ""),
    }
    body = canonical_outside(
        {name: resolve_pointer(document, pointer) for name, pointer in reader.arguments.items()}
    )
    argument_digest = compute_digest("arguments", body)
    reserve = call_reserve(spec, granted=False, step=False)
    if state.unwinding is not None:
        reserve = undone_within(state, reserve)
    effect = CallTool(
        id=view.effect_id(50, attempt),
        node=view.node.id,
        call=call.id,
        tool=spec.name,
        tool_digest=view.pins.tool_digests[spec.name],
        arguments=view.desk.put(body),
        argument_digest=argument_digest,
        reserve=reserve,
        timeout_ms=spec.timeout_ms if changed else view.deadline_ms(spec.timeout_ms),
        key=idempotency_key(view.manifest.line, spec.name, argument_digest, attempt),
        attempt=attempt,
        mutating=False,
        honours_keys=spec.honours_keys,
        lookup=False,
        conclusive=False,
        external=spec.external,
    )
    pending = PendingEffect(
        kind="call_tool", call=call.id, attempt=attempt, reserve=reserve, purpose="read_back"
    )
    body_said = CallAttempted(
        call=call.id,
        effect=effect.id,
        tool=spec.name,
        tool_version=effect.tool_digest,
        arguments=effect.arguments,
        argument_digest=argument_digest,
        idempotency_key=effect.key,
        attempt=attempt,
        mutating=False,
    )
    asked = state.evolve(
        pending=with_entry(state.pending, effect.id, pending),
        batch=with_updated_call(state, call.evolve(effect=effect.id)),
    )
    return NodeResult(
        state=asked, said=(trace_event(Phase.OBSERVATION_GROUNDING, body_said),), effects=(effect,)
    )


def compare_read_back(view: NodeContext, call: Call, observation: str) -> tuple[str, str]:
    """The verdict of the comparison: verified, or failed with the field that differs."""
    reader = _get_read_back(view, call)
    view.desk.require((observation,))
    try:
        seen = view.desk.json(observation)
    except ValueError:
        # It was cut at its bound, or is no document at all: it proves nothing either way.
        return "low_confidence", f"{reader.tool} answered what cannot be read"
    document = {
        "arguments": view.desk.json(call.arguments or ""),
        "result": view.desk.json(call.observation or ""),
    }
    for pointer, expected in reader.equal.items():
        found, wanted = resolve_pointer(seen, pointer), resolve_pointer(document, expected)
        if found is MISSING or not is_same_value(found, wanted):
            return "failed", f"read back differs at {pointer}"
    return "verified", f"read back by {reader.tool}"
