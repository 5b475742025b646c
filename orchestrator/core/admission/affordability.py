"""Check, before admission, how much of the tenant's budget window a run needs to begin (R-BUDGET-10).

The first walk is made exactly as a worker will make it, so its reservations are known exactly. A run whose
first calls cost nothing is judged by the least cost of a model call on its path.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal

from budgets.core.pricing import worst_cost
from orchestrator.core.accounting.effect_cost import ZERO, prompt_tokens
from orchestrator.core.accounting.minimum_remaining import least_rest
from orchestrator.core.common.errors import ContentMissing
from orchestrator.core.domain.content_store import ContentStore
from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.core.domain.manifest import Manifest
from orchestrator.core.domain.run_events import Headroom, Started
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.engine.machine import advance
from orchestrator.core.llm.model_call import ModelCallConfig, least_output, wanted_output
from orchestrator.core.workflow.node_protocol import AdvanceResult
from traces.core.events.trace_events import ReservationRefused

SALT = b"first call"
NOTHING: Mapping[str, bytes] = {}


def wanted_of_tenant(
    graph: CompiledGraph, manifest: Manifest, state: RunState, room: Headroom
) -> Decimal | None:
    """Return the US$ that the run must reserve first, if that is more than the tenant's ceiling leaves.

    Returns None if the run can begin.
    """
    if room.tenant_cost is None:
        return None
    try:
        started = Started(at=manifest.admitted_at)
        walk = advance(graph, manifest, state, started, room, ContentStore(SALT, NOTHING))
        refused = _find_refused_cost(walk)
    except ContentMissing:
        # The run begins by reading submitted content, which costs nothing.
        refused = None
    if refused is not None:
        return refused
    least = _compute_minimum_cost(graph, manifest, state)
    return least if least > room.tenant_cost else None


def _find_refused_cost(walk: AdvanceResult) -> Decimal | None:
    said = (word.body for move in walk.transitions for word in move.said)
    bodies = (body for body in said if isinstance(body, ReservationRefused))
    return next((body.wanted for body in bodies if body.account.startswith("tenant")), None)


def _compute_minimum_cost(graph: CompiledGraph, manifest: Manifest, state: RunState) -> Decimal:
    """Return the least cost of the run's first model call; 0 if the run may reach a result without one."""
    if not least_rest(graph, manifest.pins, state.position, "").get("model_turns"):
        return ZERO
    return min(_iterate_model_call_costs(graph, manifest), default=ZERO)


def _iterate_model_call_costs(graph: CompiledGraph, manifest: Manifest) -> Iterator[Decimal]:
    """Yield the least cost of each model call in the graph: its instructions and the shortest answer."""
    pins = manifest.pins
    for node in graph.nodes.values():
        if isinstance(config := node.config, ModelCallConfig):
            # The usual model: the cheaper one takes over once most of the run's money is spent.
            profile, prompt = pins.profile_for(config.role), pins.prompts.get(config.prompt, "")
            tokens_in = prompt_tokens(profile, prompt.strip().encode(), 1, 0)
            yield worst_cost(profile.price, tokens_in, least_output(wanted_output(profile, config)))
