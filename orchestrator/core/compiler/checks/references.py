"""Checks 1 to 6, 25, 29 and 30: the names and references of the document.

They cover ids, kinds, configs, guards, targets, the entry, prompts, untrusted inputs and schemas.
"""

import re
from collections.abc import Iterator
from typing import Any

from orchestrator.core.common.goal import Criterion
from orchestrator.core.compiler.checks.diagnostics import Diagnostic, make_diagnostic
from orchestrator.core.compiler.checks.graph_view import Drawing
from orchestrator.core.domain.graph import EdgeSpec, GuardSpec
from orchestrator.core.results.validators import known_validators
from orchestrator.core.workflow import edge_guards
from orchestrator.core.workflow.untrusted_inputs import MARK, untrusted_names
from tenancy.core.json_schema.validation import schema_fault

ENTRY_KIND = "goal_intake"
OF_FACTS = ("facts", "fact_is", "fact_at_most")


def unique_ids(drawing: Drawing) -> Iterator[Diagnostic]:
    """1: an id names one node."""
    seen: dict[str, None] = {}
    for node in drawing.spec.nodes:
        if node.id in seen:
            yield make_diagnostic(1, f"two nodes are called {node.id}", node=node.id)
        seen[node.id] = None


def known_kinds(drawing: Drawing) -> Iterator[Diagnostic]:
    """2: node kinds are defined in code; a document cannot add one."""
    for node in drawing.spec.nodes:
        if node.kind not in drawing.kinds:
            yield make_diagnostic(2, f"node {node.id}: there is no kind {node.kind}", node=node.id)


def fitting_configs(drawing: Drawing) -> Iterator[Diagnostic]:
    """3: a config has exactly the keys that its kind declares."""
    for node, sentence in drawing.misfits:
        yield make_diagnostic(3, f"node {node}: {sentence}", node=node)
    for found in drawing.of_kind("verify_observation"):
        for pattern in getattr(found.config, "unsafe", ()):
            try:
                re.compile(pattern)
            except re.error as error:
                yield make_diagnostic(
                    3, f"node {found.id}: unsafe: {pattern!r} is no pattern: {error}", node=found.id
                )

    for found in drawing.of_kind("verify_output"):
        for criterion in getattr(found.config, "acceptance", ()):
            for sentence in _find_criterion_errors(criterion):
                yield make_diagnostic(3, f"node {found.id}: acceptance: {sentence}", node=found.id)


def _find_criterion_errors(criterion: Criterion) -> Iterator[str]:
    """Yield the errors of the workflow's own criterion: it could never pass, or never fail."""
    module = known_validators().get(criterion.validator)
    if module is None:
        yield f"there is no validator {criterion.validator}"
        return
    for name in criterion.parameters:
        if name not in module.PARAMETERS:
            yield f"validator {criterion.validator} has no parameter {name}"


def known_guards(drawing: Drawing) -> Iterator[Diagnostic]:
    """4: guards are defined in code too, and their parameters refer to parts of the graph."""
    for guard, node, edge in drawing.guards():
        sentences = edge_guards.validate_guard(guard) or list(_find_unresolved_references(drawing, guard))
        for sentence in sentences:
            yield make_diagnostic(4, f"{_format_location(node, edge)}: {sentence}", node=node, edge=edge)


def _format_location(node: str, edge: EdgeSpec | None) -> str:
    return f"node {node}" if edge is None else f"edge {edge.source}.{edge.outcome}"


def _find_unresolved_references(drawing: Drawing, guard: GuardSpec) -> Iterator[str]:
    """Yield the references of a known guard that the graph lacks; with one of them the guard never holds."""
    given = guard.parameters
    if guard.name == "asked_by" and not _can_request_calls(drawing, str(given["node"])):
        yield f"guard asked_by: {given['node']} asks for no call"
    if (
        guard.name in OF_FACTS
        and not drawing.of_kind("act")
        and given["fact"] not in _list_committed_facts(drawing)
    ):
        yield f"guard {guard.name}: no tool node commits the fact {given['fact']}"
    if guard.name == "visited_less_than" and given["node"] not in _list_limited_nodes(drawing):
        yield f"guard visited_less_than: {given['node']} has no cycle limit, so its entries are not counted"
    if guard.name == "intent_is" and given["intent"] not in _list_declared_intents(drawing):
        yield f"guard intent_is: no classify_intent node declares the intent {given['intent']}"


def _can_request_calls(drawing: Drawing, node: str) -> bool:
    if node == edge_guards.MODEL:
        return bool(drawing.of_kind("act"))
    return any(found.id == node for found in drawing.of_kind("tool"))


def _list_committed_facts(drawing: Drawing) -> tuple[str, ...]:
    return tuple(node.config.fact for node in drawing.of_kind("tool") if node.config is not None)


def _list_limited_nodes(drawing: Drawing) -> tuple[str, ...]:
    return tuple(limit.through for limit in drawing.spec.cycles)


def _list_declared_intents(drawing: Drawing) -> tuple[str, ...]:
    configs = (node.config for node in drawing.of_kind("classify_intent") if node.config is not None)
    return tuple(name for config in configs for name in (*config.intents, config.default) if name)


def known_ends(drawing: Drawing) -> Iterator[Diagnostic]:
    """5: edges, interrupts, cycle limits and the entry refer to nodes of the document."""
    known = dict.fromkeys(node.id for node in drawing.spec.nodes)
    for edge in drawing.spec.edges:
        for end in (edge.source, edge.target):
            if end not in known:
                yield make_diagnostic(
                    5, f"edge {edge.source}.{edge.outcome}: there is no node {end}", edge=edge
                )
    for interrupt, target in drawing.spec.interrupts.items():
        if target not in known:
            yield make_diagnostic(5, f"interrupt {interrupt.value}: there is no node {target}")
    for limit in drawing.spec.cycles:
        if limit.through not in known:
            yield make_diagnostic(5, f"cycle limit: there is no node {limit.through}")
    if drawing.spec.entry not in known:
        yield make_diagnostic(5, f"entry: there is no node {drawing.spec.entry}")


def one_entry(drawing: Drawing) -> Iterator[Diagnostic]:
    """6: a run enters by its only goal_intake, and no edge leads back there."""
    intakes = [node.id for node in drawing.of_kind(ENTRY_KIND)]
    entry = drawing.spec.entry
    if len(intakes) != 1:
        yield make_diagnostic(6, f"a graph has exactly one {ENTRY_KIND} node; this one has {len(intakes)}")
    if entry in drawing.nodes and entry not in intakes:
        yield make_diagnostic(
            6, f"the entry {entry} is of kind {drawing.kind(entry)}, not {ENTRY_KIND}", node=entry
        )
    for edge in drawing.edges:
        if edge.target == entry:
            yield make_diagnostic(6, f"edge {edge.source}.{edge.outcome} leads back to the entry", edge=edge)


def known_prompts(drawing: Drawing) -> Iterator[Diagnostic]:
    """25: a node's prompt is one of the registered templates."""
    for node in drawing.nodes.values():
        prompt = getattr(node.config, "prompt", None)
        if drawing.prompts is not None and prompt is not None and prompt not in drawing.prompts:
            yield make_diagnostic(25, f"node {node.id}: there is no prompt {prompt}", node=node.id)


def marked_inputs(drawing: Drawing) -> Iterator[Diagnostic]:
    """29: `x-untrusted` is only used at the top level of the input schema, with the value true."""
    schema = drawing.spec.input_schema
    marked = len(untrusted_names(schema))
    if _count_marks(schema) != marked:
        yield make_diagnostic(
            29, f"input_schema: {MARK} marks an input at its top level, and its value is true"
        )


def usable_schemas(drawing: Drawing) -> Iterator[Diagnostic]:
    """30: the schemas of inputs and answer compile, and refer to nothing outside themselves."""
    for name in ("input_schema", "output_schema"):
        schema = getattr(drawing.spec, name)
        if schema is not None and (found := schema_fault(schema)) is not None:
            yield make_diagnostic(30, f"{name}: this schema cannot be used: {found}")


def _count_marks(value: Any) -> int:
    """Count the marks anywhere in a schema."""
    if isinstance(value, dict):
        return sum(_count_marks(part) for part in value.values()) + (MARK in value)
    return sum(_count_marks(part) for part in value) if isinstance(value, list) else 0
