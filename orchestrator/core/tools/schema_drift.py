"""Parser drift: a payload that does not fit its tool's declared form any more (R-TOOL-14).

The run calls that tool no further, the payload stays as it came, and whoever administers the tool is told.
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

SINCE = 3
DRIFT = "parser drift: "
NO_JSON = "the result is not JSON"
CUT = "the result is larger than a result may be"


def fault_of(spec: ToolSpec, body: bytes, *, cut: bool = False, once: bool = True) -> str:
    """Why a result cannot be read, in words; empty where it can. With `once` a member that is given twice is
    one reason."""
    if cut:
        return CUT
    try:
        value = read_json(body) if once else orjson.loads(body)
    except MemberRepeated as error:
        return f"{DRIFT}{error.msg}"
    except orjson.JSONDecodeError:
        return NO_JSON
    fault = validate_against_schema(spec.output_schema, value)
    return f"{DRIFT}{fault.detail}"[:300] if fault is not None else ""


def drift_said(view: NodeContext, call: Call, fault: str) -> tuple[TraceEntry, ...]:
    """What is said of a payload's fault, where it is its form that is wrong."""
    if view.manifest.core_version < SINCE or not (fault.startswith(DRIFT) or fault in (NO_JSON, CUT)):
        return ()
    body = ParserDrifted(
        call=call.id, tool=call.tool, tool_version=view.pins.tool_digests[call.tool],
        observation=call.observation or "", detail=fault.removeprefix(DRIFT)[:300],
    )  # fmt: skip
    return (trace_event(Phase.OBSERVATION_GROUNDING, body),)


def with_drifted_tools(state: RunState, said: tuple[TraceEntry, ...]) -> RunState:
    """The state in which the tools that were said to have drifted take no further call."""
    tools = [word.body.tool for word in said if isinstance(word.body, ParserDrifted)]
    return state.evolve(drifted=tuple(sorted({*state.drifted, *tools}))) if tools else state
