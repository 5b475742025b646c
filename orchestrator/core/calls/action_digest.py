"""The exact action that a grant is for, and no other (R-APPR-4)."""

from orchestrator.core.domain.run_state import Call
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.workflow.node_protocol import NodeContext
from traces.core.canonical import compute_digest, encode_canonical


def action_digest(view: NodeContext, call: Call, spec: ToolSpec) -> str:
    """The exact action a grant is for: run, step, tool version, arguments, boundary (R-APPR-4)."""
    assert call.argument_digest is not None
    return exact_action(
        run=str(view.manifest.run),
        call=call.id,
        step=call.by,
        tool=spec.name,
        tool_digest=view.pins.tool_digests[spec.name],
        arguments=call.argument_digest,
        boundary=view.pins.boundary_digest,
    )


def exact_action(
    *, run: str, call: str, step: str, tool: str, tool_digest: str, arguments: str, boundary: str
) -> str:
    """The digest of one exact action, from its parts."""
    exact = {
        "run": run,
        "call": call,
        "step": step,
        "tool": tool,
        "tool_digest": tool_digest,
        "arguments": arguments,
        "boundary": boundary,
    }
    return compute_digest("action", encode_canonical(exact))
