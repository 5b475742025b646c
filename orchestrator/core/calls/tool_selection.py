"""Select which of several tools of one capability a call goes to (R-TOOL-7, R-TOOL-1).

A model that requests the more expensive of two tools is referred to the cheaper one. A tool that cannot be
reached is replaced by one that its version names as equivalent and that has no higher risk. A fixed plan is
never changed to a cheaper tool: the author of the workflow has chosen.
"""

from decimal import Decimal

from orchestrator.core.common.argument_parsing import Arguments, parse_arguments, validate_against_schema
from orchestrator.core.common.name_patterns import is_listed
from orchestrator.core.domain.run_state import Call
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.workflow.node_protocol import NodeContext


def find_cheaper_tool(view: NodeContext, call: Call, spec: ToolSpec) -> ToolSpec | None:
    """Return a callable tool that does the same for less.

    Returns None if there is none, or if every such tool has failed in this run.
    """
    if call.by != "model" or call.grant is not None:
        return None
    alike = view.pins.by_capability.get(spec.capability, [])
    if len(alike) < 2:
        return None
    failed = {failure.tool for failure in view.state.failures}
    others = [
        other
        for other in alike
        if other.name not in failed and _build_cost_sort_key(other) < _build_cost_sort_key(spec)
    ]
    return next(
        (
            o
            for o in sorted(others, key=_build_cost_sort_key)
            if is_tool_available(view, o) and _no_riskier(view, o, spec)
        ),
        None,
    )


def find_substitute_tool(view: NodeContext, call: Call) -> ToolSpec | None:
    """Return the first equivalent of an unreachable tool that accepts the same arguments.

    Returns None if the tool can be reached, or if no equivalent can replace it.
    """
    spec = view.pins.by_name.get(call.tool)
    if spec is None or call.grant is not None or is_tool_reachable(view, spec):
        return None
    found = (view.pins.by_name.get(name) for name in spec.equivalents)
    return next(
        (
            o
            for o in found
            if o
            and is_tool_available(view, o)
            and _no_riskier(view, o, spec)
            and _can_accept_arguments(view, o, call)
        ),
        None,
    )


def is_tool_available(view: NodeContext, spec: ToolSpec) -> bool:
    """Return whether the run may call a tool and the tool can be reached."""
    boundary = view.pins.boundary
    grant = boundary.grant_for(spec.name)
    if grant is None or not is_listed(view.graph.spec.tools, spec.name) or not is_tool_reachable(view, spec):
        return False
    if spec.name in view.pins.left_out:
        return False
    allowed = view.risk_of(spec).rank <= min(grant.risk_ceiling.rank, boundary.risk_ceiling.rank)
    return allowed and all(scope in view.manifest.scopes for scope in spec.scopes)


def is_tool_reachable(view: NodeContext, spec: ToolSpec) -> bool:
    """Return whether a tool can be reached: no stop, no open circuit, no schema drift."""
    state, room = view.state, view.headroom
    closed = (*room.open_circuits, *room.stopped_tools, *state.stopped_tools, *state.drifted)
    return spec.name not in closed


def _build_cost_sort_key(spec: ToolSpec) -> tuple[bool, Decimal, bool]:
    """Return the sort key by cost: known prices first, then lower prices, then local tools.

    A local tool gives the same answer every time.
    """
    price = spec.price_usd
    return (price is None, price or Decimal(0), not spec.local)


def _no_riskier(view: NodeContext, other: ToolSpec, spec: ToolSpec) -> bool:
    return view.risk_of(other).rank <= view.risk_of(spec).rank and (spec.is_mutating or not other.is_mutating)


def _can_accept_arguments(view: NodeContext, spec: ToolSpec, call: Call) -> bool:
    """Return whether the call's arguments are valid for this tool as well."""
    parsed = parse_arguments(view.desk.read(call.arguments or call.raw))
    return isinstance(parsed, Arguments) and validate_against_schema(spec.input_schema, parsed.value) is None
