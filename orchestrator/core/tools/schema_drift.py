"""Parser drift: a payload that no longer fits its tool's declared schema (R-TOOL-14).

The run makes no further call of that tool, the payload is stored as it came, and the administrator of the
tool is notified.
"""

import orjson

from orchestrator.core.common.argument_parsing import validate_against_schema
from orchestrator.core.domain.run_state import Call, RunState
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.workflow.node_protocol import NodeContext, trace_event
from tenancy.core.json_reading import MemberRepeated, read_json
from traces.core.events.phases import Phase
from traces.core.events.trace_events import ParserDrifted
from traces.core.integrity.chain import TraceEntry

DRIFT = "parser drift: "
NO_JSON = "the result is not JSON"
CUT = "the result is larger than a result may be"


def fault_of(spec: ToolSpec, body: bytes, *, cut: bool = False) -> str:
    """Return why a result cannot be read, or "" if it can. A duplicate member is a fault, too."""
    if cut:
        return CUT
    try:
        value = read_json(body)
    except MemberRepeated as error:
        return f"{DRIFT}{error.msg}"
    except orjson.JSONDecodeError:
        return NO_JSON
    fault = validate_against_schema(spec.output_schema, value)
    return f"{DRIFT}{fault.detail}"[:300] if fault is not None else ""


def drift_said(view: NodeContext, call: Call, fault: str) -> tuple[TraceEntry, ...]:
    """Return the trace entry for a payload's fault, if its form is wrong."""
    if not (fault.startswith(DRIFT) or fault in (NO_JSON, CUT)):
        return ()
    body = ParserDrifted(
        call=call.id, tool=call.tool, tool_version=view.pins.tool_digests[call.tool],
        observation=call.observation or "", detail=fault.removeprefix(DRIFT)[:300],
    )  # fmt: skip
    return (trace_event(Phase.OBSERVATION_GROUNDING, body),)


def with_drifted_tools(state: RunState, said: tuple[TraceEntry, ...]) -> RunState:
    """Return the state in which the tools reported as drifted take no further call."""
    tools = [word.body.tool for word in said if isinstance(word.body, ParserDrifted)]
    return state.evolve(drifted=tuple(sorted({*state.drifted, *tools}))) if tools else state
