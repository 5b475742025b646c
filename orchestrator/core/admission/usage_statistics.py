"""Learn bounds of the remaining usage, by place, from the newest runs of a workflow (R-BUDGET-4)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from budgets.core.dimension import Dimension
from budgets.core.statistics.forecast import KEPT, LEAST, estimate_interval
from orchestrator.core.accounting.effect_cost import ZERO
from orchestrator.core.accounting.remaining_estimate import any_place
from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.common.goal import Goal
from orchestrator.core.domain.effects import Amounts
from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.core.domain.manifest import Pins, UsageStatistics
from orchestrator.core.llm.model_call import ModelCallConfig
from traces.core.canonical import canonical_model, compute_digest, encode_canonical

# A manifest carries at most this many places: those that most runs reached.
PLACES = 32
NUMBERS = 16
FORETOLD = (
    Dimension.STEPS, Dimension.MODEL_TURNS, Dimension.TOOL_CALLS, Dimension.EXTERNAL_CALLS,
    Dimension.INPUT_TOKENS, Dimension.OUTPUT_TOKENS, Dimension.TOTAL_TOKENS, Dimension.COST_USD,
    Dimension.WALL_CLOCK_SECONDS,
)  # fmt: skip


# The remaining usage of runs, by place and by run.
Seen = dict[str, dict[str, list[Amounts]]]


def subject_of(graph: CompiledGraph, pins: Pins) -> str:
    """Return the digest of what runs must have in common to predict each other.

    It covers the graph, the registry of tools, and the models that the workflow uses, each with its price.
    SHA-256, hexadecimal.
    """
    roles = sorted(
        {node.config.role for node in graph.nodes.values() if isinstance(node.config, ModelCallConfig)}
    )
    usual = [pins.profile_for(role) for role in roles]
    playing = {profile.name for profile in usual} | {profile.cheaper for profile in usual}
    # Streaming, failover, the owner of the key and the number of simultaneous calls do not affect what a
    # model needs, and older subjects did not include them.
    models = [
        profile.model_dump(mode="json", exclude={"streams", "failover", "own", "secret", "at_once"})
        for profile in pins.profiles
        if profile.name in playing
    ]
    body = {"graph": graph.digest, "registry": pins.registry_digest, "roles": roles, "models": models}
    return compute_digest("expectation", encode_canonical(body))


class PassedPlace(FrozenModel):
    """A place that a run reached, and what it had used by then."""

    key: str
    used: Amounts


class FinishedRun(FrozenModel):
    """One run that reached a result: the places it passed and its total usage.

    Runs for the same goal have the same `kind`.
    """

    run: str
    passed: tuple[PassedPlace, ...]
    used: Amounts
    kind: str = ""


def kind_of_goal(tenant: str, goal: Goal) -> str:
    """Return a digest that runs for the same goal share, whatever their deadline.

    The tenant is part of the digest, so that it reveals nothing to the holder of another tenant's digest.
    SHA-256, hexadecimal.
    """
    return compute_digest("goal", tenant.encode() + b"\0" + canonical_model(goal.evolve(deadline=None)))


def with_run(lived: Sequence[FinishedRun], one: FinishedRun) -> tuple[FinishedRun, ...]:
    """Return the newest runs with `one` as the last of them; each run counts once."""
    others = [held for held in lived if held.run != one.run]
    return tuple((*others, one)[-KEPT:])


def expected_of(lived: Sequence[FinishedRun]) -> UsageStatistics:
    """Return what runs like these are expected to need, by place.

    The places are those that enough runs reached, and, wherever the runs were, each number of actions: runs
    that choose their own path seldom meet at one place. A run that reached a place more than once counts
    there with its least and its greatest remaining usage.
    """
    seen: Seen = defaultdict(dict)
    anywhere: Seen = defaultdict(dict)
    kinds = {one.run: one.kind for one in lived}
    for one in lived:
        for passed in one.passed:
            rest = _compute_remaining_usage(one, passed)
            seen[passed.key].setdefault(one.run, []).append(rest)
            anywhere[any_place(passed.key)].setdefault(one.run, []).append(rest)
    exact = _select_common_places(seen, PLACES)
    places = {**exact, **_select_common_places(anywhere, NUMBERS)}
    return UsageStatistics(
        runs=len(lived),
        rest={
            key: _compute_usage_bounds(places[key], _count_distinct_kinds(kinds, places[key]))
            for key in sorted(places)
        },
        least={
            key: {name: lower for name, (lower, _) in _compute_usage_bounds(exact[key]).items()}
            for key in sorted(exact)
        },
    )


def _count_distinct_kinds(kinds: Mapping[str, str], runs: Iterable[str]) -> int:
    return len({kinds[run] for run in runs})


def _select_common_places(seen: Seen, most: int) -> Seen:
    """Return the places that most runs reached, if enough did."""
    runs = Counter({key: len(found) for key, found in seen.items() if len(found) >= LEAST})
    return {key: seen[key] for key, _ in runs.most_common(most)}


def _compute_remaining_usage(one: FinishedRun, passed: PassedPlace) -> Amounts:
    return {
        name.value: max(ZERO, one.used.get(name.value, ZERO) - passed.used.get(name.value, ZERO))
        for name in FORETOLD
    }


def _select_first_and_last(rests: list[Amounts]) -> list[Amounts]:
    """Return the greatest and the least remaining usage of one run from one place.

    These are the first and the last entry.
    """
    return [rests[0]] if len(rests) == 1 else [rests[0], rests[-1]]


def _compute_usage_bounds(
    by_run: Mapping[str, list[Amounts]], kinds: int = KEPT
) -> dict[str, tuple[Decimal, Decimal]]:
    rests = [rest for one in by_run.values() for rest in _select_first_and_last(one)]
    found = {}
    for name in FORETOLD:
        interval = estimate_interval(name, [rest[name.value] for rest in rests], kinds)
        if interval.upper is not None:
            found[name.value] = (interval.lower, interval.upper)
    return found
