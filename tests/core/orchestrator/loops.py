"""The shipped tool loop over four small tools, simulated: one of each sort that matters."""

from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Any

from orchestrator import bundled_content
from orchestrator.core.common.goal import Goal
from orchestrator.core.compiler.compiler import compile_graph
from orchestrator.core.domain.boundary import Boundary, ToolGrant
from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.core.domain.tool_spec import QuorumStep, ReadBack, Reversibility, Risk, ToolSpec, Verifier
from orchestrator.core.policy.rules import Policy
from tests.core.orchestrator.simulation import PERMISSIVE, Simulation, manifest, pins

OBJECT = {"type": "object"}
ORDER = {
    "type": "object",
    "properties": {"id": {"type": "string"}},
    "required": ["id"],
    "additionalProperties": False,
}


def _tool(name: str, **more: Any) -> ToolSpec:
    base: dict[str, Any] = {
        "name": name,
        "version": 1,
        "description": name,
        "category": "test",
        "capability": name,
        "input_schema": OBJECT,
        "output_schema": OBJECT,
        "risk": Risk.READ_ONLY,
        "reversibility": Reversibility.PURE,
    }
    return ToolSpec(**(base | more))


TOOLS = {
    "orders.lookup": _tool("orders.lookup", input_schema=ORDER, parallel_safe=True, external=True),
    "payments.find": _tool("payments.find"),
    "payments.refund": _tool(
        "payments.refund",
        risk=Risk.DESTRUCTIVE,
        reversibility=Reversibility.IRREVERSIBLE,
        honours_keys=True,
        amount="/amount",
        quorum=(QuorumStep(up_to=Decimal(200), approvers=1), QuorumStep(approvers=2)),
        claims=("refunded",),
        verifier=Verifier(
            name="read_back",
            read_back=ReadBack(
                tool="payments.find", arguments={"id": "/result/id"}, equal={"/id": "/result/id"}
            ),
        ),
    ),
    "ledger.post": _tool("ledger.post", risk=Risk.DESTRUCTIVE, reversibility=Reversibility.IRREVERSIBLE),
}
BOUNDARY = Boundary(
    slug="test",
    version=1,
    risk_ceiling=Risk.DESTRUCTIVE,
    tools=(ToolGrant(name="orders.*"), ToolGrant(name="payments.*")),
)
LIMITS = {
    "model_turns": 12,
    "tool_calls": 12,
    "steps": 12,
    "external_calls": 6,
    "input_tokens": 500_000,
    "output_tokens": 50_000,
    "total_tokens": 500_000,
    "cost_usd": 1,
    "wall_clock_seconds": 60,
    "retries": 2,
    "side_effects": 0,
    "granted_side_effects": 2,
    "transitions": 2_000,
}


@cache
def graph_over(tools: tuple[str, ...]) -> CompiledGraph:
    """The shipped tool loop with this allow-list."""
    spec = bundled_content.get_bundled_workflow("tool-loop").evolve(tools=tools, boundary="test")
    return compile_graph(spec.model_dump(mode="json", exclude_defaults=True))


GRAPH = graph_over(tuple(TOOLS))


def loop(
    *,
    goal: Goal | None = None,
    boundary: Boundary = BOUNDARY,
    tools: Mapping[str, ToolSpec] = TOOLS,
    scopes: tuple[str, ...] = ("submit",),
    graph_tools: tuple[str, ...] = tuple(TOOLS),
    policy: Policy = PERMISSIVE,
    **limits: int,
) -> Simulation:
    """A started run that waits for its first model reply."""
    graph = graph_over(graph_tools)
    held = manifest(graph, pins(tools, boundary, ("tool-loop",)).evolve(policy=policy), LIMITS | limits, goal)
    run = Simulation.of(graph, held.evolve(scopes=scopes))
    run.start()
    return run
