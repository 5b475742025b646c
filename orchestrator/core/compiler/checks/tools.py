"""Checks 20 to 24: a graph that can call tools has permission, schema, budget, timeout and verification
for each.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation

from orchestrator.core.common.name_patterns import EVERY, is_listed, is_name_match
from orchestrator.core.compiler.checks.diagnostics import Diagnostic, make_diagnostic
from orchestrator.core.compiler.checks.graph_view import Drawing
from orchestrator.core.domain.graph import Node
from orchestrator.core.domain.tool_spec import ToolSpec

CALLERS = ("act", "tool")
CAPABLE = (*CALLERS, "check_tool", "invoke_tool")
COUNTED = ("tool_calls", "steps")
OBSERVED_ONLY = "observed_only"


def named_tools(drawing: Drawing) -> Mapping[str, ToolSpec]:
    """The registered tools that the graph's allow-list names; of those that stand behind `*` alone, the ones
    that the boundary allows."""
    known, boundary = drawing.tools or {}, drawing.boundary
    return {
        name: known[name]
        for name in sorted(known)
        if any(is_name_match(pattern, name) for pattern in drawing.spec.tools)
        or (EVERY in drawing.spec.tools and boundary is not None and boundary.allows(known[name]))
    }


def diagnose_unpermitted_tools(drawing: Drawing) -> Iterator[Diagnostic]:
    """20: every tool stands in the graph's allow-list, in the registry and within the boundary."""
    allow = drawing.spec.tools
    if not allow:
        for node in drawing.of_kind(*CAPABLE):
            yield make_diagnostic(
                20, f"node {node.id} can call tools, but the graph's allow-list is empty", node=node.id
            )
    for node, tool in _list_fixed_calls(drawing):
        if allow and not is_listed(allow, tool):
            yield make_diagnostic(
                20, f"node {node.id} calls {tool}, which is not in the graph's allow-list", node=node.id
            )
    if drawing.tools is not None:
        for pattern in allow:
            if pattern != EVERY and not any(is_name_match(pattern, name) for name in drawing.tools):
                yield make_diagnostic(20, f"the allow-list names {pattern}, which is not registered")
    yield from _within_boundary(drawing)


def _within_boundary(drawing: Drawing) -> Iterator[Diagnostic]:
    boundary = drawing.boundary
    if boundary is None:
        return
    if (
        drawing.of_kind("act")
        and drawing.of_kind("check_tool")
        and "tool_choice" not in boundary.decision_rights
    ):
        yield make_diagnostic(
            20, f"a model chooses tools, but boundary {boundary.slug} does not grant tool_choice"
        )
    for name, spec in named_tools(drawing).items():
        grant = boundary.grant_for(name)
        if grant is None:
            yield make_diagnostic(20, f"boundary {boundary.slug} does not allow {name}")
        elif spec.risk.rank > min(grant.risk_ceiling.rank, boundary.risk_ceiling.rank):
            yield make_diagnostic(
                20, f"{name} is {spec.risk.value}, above the ceiling of boundary {boundary.slug}"
            )
        back = spec.compensation
        if back is not None and boundary.compensation != "report" and boundary.grant_for(back.tool) is None:
            sentence = f"{name} is undone by {back.tool}, which boundary {boundary.slug} does not allow"
            yield make_diagnostic(20, f"{sentence}: allow it, or say compensation: report")


def fitting_schema(drawing: Drawing) -> Iterator[Diagnostic]:
    """21: a fixed call names arguments of its tool's schema, all required ones, and facts that some node
    commits.
    """
    facts = dict.fromkeys(node.config.fact for node, _ in _list_fixed_calls(drawing))
    for node, tool in _list_fixed_calls(drawing):
        for name, source in node.config.arguments.items():
            for fact in _facts_in(source):
                if fact not in facts:
                    yield make_diagnostic(
                        21,
                        f"node {node.id}: argument {name} needs the fact {fact}, which no node commits",
                        node=node.id,
                    )
        if drawing.tools is not None and tool in drawing.tools:
            yield from _against_schema(node, drawing.tools[tool])


def _against_schema(node: Node, spec: ToolSpec) -> Iterator[Diagnostic]:
    schema, given = spec.input_schema, node.config.arguments
    properties, required = schema.get("properties", {}), schema.get("required", ())
    for name in given:
        if name not in properties and schema.get("additionalProperties", True) is False:
            yield make_diagnostic(21, f"node {node.id}: {spec.name} has no argument {name}", node=node.id)
    for name in required:
        if name not in given:
            yield make_diagnostic(21, f"node {node.id}: {spec.name} needs the argument {name}", node=node.id)


def _facts_in(source: object) -> Iterator[str]:
    while source is not None:
        fact = getattr(source, "fact", None)
        if fact is not None:
            yield fact
        source = getattr(source, "otherwise", None)


def diagnose_missing_call_limits(drawing: Drawing) -> Iterator[Diagnostic]:
    """22: calls are counted against a limit, stated by the workflow or its boundary, in known amounts."""
    for name, amount in drawing.spec.budget.items():
        if _parse_budget_amount(amount) is None:
            yield make_diagnostic(22, f"budget {name}: {amount!r} is no amount")
    stated: dict[str, object] = dict(drawing.spec.budget)
    if drawing.boundary is not None:
        stated = {
            name: amount for name, amount in drawing.boundary.budget.items() if amount is not None
        } | stated
    elif not stated:
        return
    if any(name in stated for name in COUNTED):
        return
    for node in drawing.of_kind("invoke_tool"):
        yield make_diagnostic(
            22, f"node {node.id} calls tools, but neither {' nor '.join(COUNTED)} is limited", node=node.id
        )


def diagnose_excessive_timeouts(drawing: Drawing) -> Iterator[Diagnostic]:
    """23: no tool may take longer than the whole run (every tool version has a timeout by its type)."""
    stated = drawing.spec.budget.get("wall_clock_seconds")
    if stated is None and drawing.boundary is not None:
        limit = drawing.boundary.budget.get("wall_clock_seconds")
    else:
        limit = None if stated is None else _parse_budget_amount(stated)
    if limit is None:
        return
    for name, spec in named_tools(drawing).items():
        if Decimal(spec.timeout_ms) / 1000 > limit:
            yield make_diagnostic(
                23, f"{name} may take {spec.timeout_ms} ms, longer than the run's {limit} s"
            )


def diagnose_missing_verifiers(drawing: Drawing) -> Iterator[Diagnostic]:
    """24: a mutating result has a verifier, or the graph says that it stays observed only (R-TOOL-12)."""
    known = drawing.tools or {}
    strict = [node for node in drawing.of_kind("check_tool") if not _may_stay_unverified(node)]
    for name, spec in named_tools(drawing).items():
        if spec.is_mutating and spec.verifier is None and strict:
            where = strict[0].id
            sentence = f"{name} names no verifier: let every check_tool say unverified: {OBSERVED_ONLY}"
            yield make_diagnostic(24, sentence, node=where)
        reader = spec.verifier.read_back if spec.verifier is not None else None
        if reader is not None and (reader.tool not in known or known[reader.tool].is_mutating):
            yield make_diagnostic(
                24, f"{name} is verified by {reader.tool}, which is not a registered read-only tool"
            )


def _may_stay_unverified(node: Node) -> bool:
    return getattr(node.config, "unverified", None) == OBSERVED_ONLY


def _list_fixed_calls(drawing: Drawing) -> tuple[tuple[Node, str], ...]:
    return tuple((node, node.config.tool) for node in drawing.of_kind("tool") if node.config is not None)


def _parse_budget_amount(value: int | str) -> Decimal | None:
    try:
        amount = Decimal(value)
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and amount >= 0 else None
