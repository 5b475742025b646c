"""Estimate, as bounds, how much of its budget a run still needs (R-BUDGET-4).

The graph gives a lower bound: the amount that every path to a result needs. Earlier runs of the same
workflow give further bounds. The observed bounds are pinned in the manifest, so that a replay expects the
same amounts.
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
from orchestrator.core.workflow.node_protocol import RefusedEffect

# After this many committed actions a run is no longer comparable with other runs of its workflow.
LAST_STEP = 30
ACCOUNT = "estimate"
_STOPPING = tuple(dimension.value for dimension in STOPPING)


def key_of(kind: str, name: str, usage: Mapping[str, Decimal]) -> str:
    """Return the key of a place in a run: the next request and the number of actions before it.

    Remaining amounts are compared between runs by this key. `kind` is "m" (a model call, at the node
    `name`) or "t" (a call of the tool `name`).
    """
    return f"{kind}:{name}:{min(LAST_STEP, int(usage.get('steps', ZERO)))}"


def any_place(key: str) -> str:
    """Return the key for any place after as many committed actions as `key` states.

    This key is the fallback for a place that too few runs reached. Manifests that were made before this
    fallback existed have no such entry, so their runs replay unchanged.
    """
    return f"*:*:{key.rpartition(':')[2]}"


def key_of_turn(effects: Iterable[Effect], usage: Mapping[str, Decimal]) -> str | None:
    """Return the key of the model call among the effects, or None if there is none.

    Tool calls are not covered: they are judged earlier, with their other checks, while people can still be
    asked.
    """
    nodes = (effect.node for effect in effects if isinstance(effect, CallModel))
    return next((key_of("m", node, usage) for node in nodes), None)


def compute_remaining_bounds(
    graph: CompiledGraph, manifest: Manifest, state: RunState, key: str | None
) -> dict[str, Interval]:
    """Return bounds of what remains to a result, by dimension.

    The keys are the dimensions of the run's limits for which any bound is known. If too few runs reached
    this exact place, the bounds observed at any place after the same number of actions are used.
    """
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
    """Return the least amounts with which any run reached a result from this exact place.

    Each amount is at least the graph's own lower bound. Bounds observed at other places are not used: a
    path that no earlier run took may be a short one.
    """
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
    """Return the bounds for the current state, effects in flight included; empty once the run has ended."""
    if state.outcome is not None:
        return {}
    return compute_remaining_bounds(graph, manifest, state, place_of(state))


def place_of(state: RunState) -> str | None:
    """Return the key of the effect in flight, or of the call that waits for approval."""
    if any(held.kind == "call_model" for held in state.pending.values()):
        return key_of("m", state.position, state.usage)
    calls = (*state.batch, *state.queue)
    return key_of("t", calls[0].tool, state.usage) if calls else key_of("m", state.position, state.usage)


def asker_of(state: RunState) -> str:
    """Return the node that requested the current or latest calls; `model` if a model requested them."""
    calls = (*state.batch, *state.queue)
    if calls:
        return calls[0].by
    return state.last_askers[0] if state.last_askers else ""


def too_little(
    graph: CompiledGraph, manifest: Manifest, state: RunState, key: str | None
) -> RefusedEffect | None:
    """Return the first dimension whose amount left is below the least that the rest of the run needs.

    A run that cannot reach its end is stopped before it spends more. A run without expectations in its
    manifest is never stopped here.
    """
    if manifest.expected is None or key is None:
        return None
    needed = least_of(graph, manifest, state, key)
    for name in _STOPPING:
        if (least := needed.get(name)) is None:
            continue
        left = state.left(name)
        if left is not None and left < least:
            return RefusedEffect(
                dimension=name, limit=state.limits[name], wanted=least, left=left, account=ACCOUNT
            )
    return None
