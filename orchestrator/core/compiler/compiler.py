"""Draw, compile, freeze: a document becomes an immutable graph with one digest, or all its faults
(R-GRAPH-2, R-GRAPH-3).
"""

from collections.abc import Collection, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from orchestrator.core import nodes
from orchestrator.core.common.backoff import CAP_MS
from orchestrator.core.compiler.checks import ALL, autonomy
from orchestrator.core.compiler.checks.diagnostics import Diagnostic, make_diagnostic
from orchestrator.core.compiler.checks.graph_view import Drawing, build_graph_view
from orchestrator.core.compiler.errors import CompileFailed
from orchestrator.core.domain.boundary import Boundary
from orchestrator.core.domain.graph import CompiledGraph, Edge, GraphSpec
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.workflow.node_protocol import NodeKind
from traces.core.canonical import compute_digest, encode_canonical
from traces.core.errors import NotCanonical

DOMAIN = "graph"
# Where the limits leave calls open: what one reply may ask for (Boundary.max_calls_per_reply) at its default.
CALLS_PER_REPLY = 16
MODEL_TURNS = 10
# Stays: signals of people, the start, a hold at the end of a slice. They are records without a move.
SPARE = 100
# Who waits for a model asks it, hears that it is away, asks again, and hears that its circuit is open; before
# the wait has its full length it does so a few times more.
AN_ATTEMPT, ATTEMPTS_BEFORE = 4, 10


def compile_graph(
    document: GraphSpec | Mapping[str, Any],
    *,
    kinds: Mapping[str, NodeKind] | None = None,
    tools: Mapping[str, ToolSpec] | None = None,
    boundary: Boundary | None = None,
    prompts: Collection[str] | None = None,
    queues: Collection[str] | None = None,
) -> CompiledGraph:
    """Compile `document`. Raises CompileFailed with every fault in ``data["faults"]``.

    `kinds` are the node kinds (default: those of core/nodes). With `tools`, `boundary`,
    `prompts` and `queues` what the graph names is checked against them as well: publication does so, a later
    look at a published version need not.
    """
    spec = _parse_graph_spec(document)
    drawing = build_graph_view(
        spec, nodes.discover_node_kinds() if kinds is None else kinds, tools, boundary, prompts, queues
    )
    faults = collect_diagnostics(drawing)
    if faults:
        raise build_compile_error(faults)
    return freeze_graph(drawing)


def compile_published_graph(document: Mapping[str, Any]) -> CompiledGraph:
    """The compiled graph of a published version, which had no faults when it was compiled. Raises
    CompileFailed for what is no graph specification."""
    return freeze_graph(build_graph_view(_parse_graph_spec(document), nodes.discover_node_kinds()))


def collect_diagnostics(drawing: Drawing) -> tuple[Diagnostic, ...]:
    """Every fault of every check, in the order of their numbers' checks."""
    found = [given for one in ALL for given in one(drawing)]
    return (*found, *_diagnose_canonical_form(drawing.spec))


def build_compile_error(faults: tuple[Diagnostic, ...]) -> CompileFailed:
    """The error that carries all faults."""
    return CompileFailed(count=len(faults), faults=[given.model_dump(mode="json") for given in faults])


def freeze_graph(drawing: Drawing) -> CompiledGraph:
    """The compiled graph of a drawing without faults. Its mappings are read-only."""
    spec = drawing.spec
    edges = {node: MappingProxyType(_by_outcome(drawing, node)) for node in drawing.nodes}
    # model_construct, because validation would copy the read-only mappings into plain dictionaries.
    return CompiledGraph.model_construct(
        spec=spec,
        digest=compute_digest(DOMAIN, canonical_form(spec)),
        nodes=MappingProxyType(dict(drawing.nodes)),
        edges=MappingProxyType(edges),
        interrupts=MappingProxyType(dict(spec.interrupts)),
        entry=spec.entry,
        tier=autonomy.compute_autonomy_tier(drawing),
        cycle_limits=MappingProxyType(_collect_cycle_limits(spec)),
    )


def canonical_form(spec: GraphSpec) -> bytes:
    """The bytes that are hashed and stored; compiling them again gives the same graph.

    Nodes, tools and cycle limits are sorted, for their order means nothing; edges are grouped by source and
    outcome, within which their order is kept, for they are tried in it. Defaults are left out, so that a
    field added later does not change the digest of a graph that knows nothing of it.
    """
    plain = spec.model_dump(mode="json", exclude_defaults=True)
    plain["nodes"] = sorted(plain["nodes"], key=lambda node: node["id"])
    plain["edges"] = sorted(plain["edges"], key=lambda edge: (edge["source"], edge["outcome"]))
    if spec.tools:
        plain["tools"] = sorted(spec.tools)
    if spec.cycles:
        plain["cycles"] = sorted(plain["cycles"], key=lambda limit: (limit["through"], limit["limit"]))
    return encode_canonical(plain)


def transition_bound(
    graph: CompiledGraph, limits: Mapping[str, Decimal | None], *, calls_per_reply: int = CALLS_PER_REPLY
) -> int:
    """The hard limit `transitions` of a run of this graph under these limits (R-GRAPH-17).

    Between two moves that use something up a walk passes each node at most once, plus once per call that a
    reply asked for and that was not run; each use is a model turn, a call, or a person's decision about a
    call. So with N nodes

        N x (2 + turns + calls + decisions) + turns x calls_per_reply + attempts x (turns + calls) + spare

    where decisions <= calls + turns, each attempt of an effect may leave two records (failure, timer), and
    `spare` is for records of people's signals, and for those of an outage that is waited out. It is generous
    on purpose: what should stop a run first is its budget.
    """
    known = {name: amount for name, amount in limits.items() if amount is not None}
    turns = int(known.get("model_turns", Decimal(MODEL_TURNS)))
    counted = [known[name] for name in ("tool_calls", "steps") if name in known]
    fixed = sum(node.kind == "tool" for node in graph.nodes.values())
    calls = int(min(counted)) if counted else turns * calls_per_reply + fixed
    attempts = 2 * (1 + int(known.get("retries", Decimal(10))))
    working = sum(node.kind != "terminate" for node in graph.nodes.values())
    persons = calls + turns
    spare = SPARE + AN_ATTEMPT * (graph.spec.model_patience_seconds * 1_000 // CAP_MS + ATTEMPTS_BEFORE)
    return (
        working * (2 + turns + calls + persons) + turns * calls_per_reply + attempts * (turns + calls) + spare
    )


def _parse_graph_spec(document: GraphSpec | Mapping[str, Any]) -> GraphSpec:
    if isinstance(document, GraphSpec):
        return document
    try:
        return GraphSpec.model_validate(document)
    except ValidationError as error:
        faults = tuple(
            make_diagnostic(0, f"{'.'.join(map(str, found['loc']))}: {found['msg']}")
            for found in error.errors(include_url=False, include_input=False, include_context=False)
        )
        raise build_compile_error(faults) from error


def _diagnose_canonical_form(spec: GraphSpec) -> tuple[Diagnostic, ...]:
    """A document has one form to be hashed: no fractions as floating point, no keys that are not text."""
    try:
        canonical_form(spec)
    except (NotCanonical, TypeError, ValueError) as error:
        return (make_diagnostic(0, f"the document has no canonical form: {error}"[:300]),)
    return ()


def _collect_cycle_limits(spec: GraphSpec) -> dict[str, int]:
    """The limit of each node; of two the lower holds."""
    found: dict[str, int] = {}
    for limit in sorted(spec.cycles, key=lambda given: given.limit, reverse=True):
        found[limit.through] = limit.limit
    return found


def _by_outcome(drawing: Drawing, node: str) -> dict[str, tuple[Edge, ...]]:
    found: dict[str, list[Edge]] = {}
    for edge in drawing.leaving[node]:
        found.setdefault(edge.outcome, []).append(Edge(guard=edge.guard, target=edge.target))
    return {outcome: tuple(edges) for outcome, edges in found.items()}
