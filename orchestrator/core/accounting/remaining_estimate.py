"""What a run still needs, as bounds: from the graph before it, and from how others of its workflow went on
(R-BUDGET-4).

The graph gives what no way to a result can do without; what was observed is pinned in the manifest, so that a
replay expects the same.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from budgets.core.statistics.forecast import STOPPING, UNKNOWN, Interval
from orchestrator.core.accounting.effect_cost import ZERO
from orchestrator.core.accounting.minimum_remaining import least_rest
from orchestrator.core.domain.effects import CallModel, Effect
from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.core.domain.manifest import Manifest
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.workflow.node_protocol import Refused

# Beyond so many committed actions a run is no longer like others of its workflow.
LAST_STEP = 30
ACCOUNT = "estimate"
_STOPPING = tuple(dimension.value for dimension in STOPPING)


def key_of(kind: str, name: str, usage: Mapping[str, Decimal]) -> str:
    """The place in a run from which rests are compared: what is about to be asked, after how many actions.

    `kind` is m (a model, at the node `name`) or t (the tool `name`).
    """
    return f"{kind}:{name}:{min(LAST_STEP, int(usage.get('steps', ZERO)))}"


def any_place(key: str) -> str:
    """Wherever a run is after as many committed actions as `key` says: what is known of a place that too few
    came by. Runs learnt from before there was one say nothing of it, and replay as they were."""
    return f"*:*:{key.rpartition(':')[2]}"


def key_of_turn(effects: Iterable[Effect], usage: Mapping[str, Decimal]) -> str | None:
    """The place of a model call that is about to be asked for; None where there is none. Tool calls are
    judged before, with their other checks, while people can still be asked."""
    nodes = (effect.node for effect in effects if isinstance(effect, CallModel))
    return next((key_of("m", node, usage) for node in nodes), None)


def compute_remaining_bounds(
    graph: CompiledGraph, manifest: Manifest, state: RunState, key: str | None
) -> dict[str, Interval]:
    """What remains of each dimension to a result, by name. The keys are the dimensions of the run's limits
    that anything is known of. Where too few came by this very place, what was seen after as many actions
    counts, wherever that was."""
    least = least_rest(graph, manifest.pins, state.position, asker_of(state))
    expected = manifest.expected
    known = {} if expected is None else expected.rest
    rest = {} if key is None else known.get(key) or known.get(any_place(key), {})
    found: dict[str, Interval] = {}
    for name in state.limits:
        pair = rest.get(name)
        seen = UNKNOWN if pair is None else Interval(lower=pair[0], upper=pair[1])
        interval = seen.at_least(least.get(name, ZERO))
        if interval != UNKNOWN:
            found[name] = interval
    return found


def least_of(graph: CompiledGraph, manifest: Manifest, state: RunState, key: str) -> dict[str, Decimal]:
    """What nobody came to a result with less of, from this very place, and what no way can do without. A way
    that nobody went before may be a short one: what others needed elsewhere says nothing."""
    found = dict(least_rest(graph, manifest.pins, state.position, asker_of(state)))
    expected = manifest.expected
    if expected is not None:
        pairs = expected.rest.get(key, {})
        seen = expected.least.get(key) or {name: lower for name, (lower, _) in pairs.items()}
        found |= {name: max(amount, found.get(name, ZERO)) for name, amount in seen.items()}
    return found


def estimate_remaining_usage(
    graph: CompiledGraph, manifest: Manifest, state: RunState
) -> dict[str, Interval]:
    """The bounds as the run stands now, what is in flight included; nothing once it has ended."""
    if state.outcome is not None:
        return {}
    return compute_remaining_bounds(graph, manifest, state, place_of(state))


def place_of(state: RunState) -> str | None:
    """The place of what is in flight, or of the call that waits for people."""
    if any(held.kind == "call_model" for held in state.pending.values()):
        return key_of("m", state.position, state.usage)
    calls = (*state.batch, *state.queue)
    return key_of("t", calls[0].tool, state.usage) if calls else key_of("m", state.position, state.usage)


def asker_of(state: RunState) -> str:
    """The node that asked for the calls on their way, or last did; `model` where a model did."""
    calls = (*state.batch, *state.queue)
    if calls:
        return calls[0].by
    return state.last_askers[0] if state.last_askers else ""


def too_little(graph: CompiledGraph, manifest: Manifest, state: RunState, key: str | None) -> Refused | None:
    """The first dimension of which less is left than the rest of the run needs at the least: a run that
    cannot come to its end is stopped before it spends more. A run that nothing is expected of never is."""
    if manifest.expected is None or key is None:
        return None
    needed = least_of(graph, manifest, state, key)
    for name in _STOPPING:
        if (least := needed.get(name)) is None:
            continue
        left = state.left(name)
        if left is not None and left < least:
            return Refused(dimension=name, limit=state.limits[name], wanted=least, left=left, account=ACCOUNT)
    return None
