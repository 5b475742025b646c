"""What the newest runs of a workflow teach those that follow: bounds of the rest, by place (R-BUDGET-4)."""

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
from orchestrator.core.domain.manifest import Expected, Pins
from orchestrator.core.llm.model_call import Asking
from traces.core.canonical import canonical_model, compute_digest, encode_canonical

# A manifest carries at most so many places, those that most runs came by.
PLACES = 32
NUMBERS = 16
FORETOLD = (
    Dimension.STEPS, Dimension.MODEL_TURNS, Dimension.TOOL_CALLS, Dimension.EXTERNAL_CALLS,
    Dimension.INPUT_TOKENS, Dimension.OUTPUT_TOKENS, Dimension.TOTAL_TOKENS, Dimension.COST_USD,
    Dimension.WALL_CLOCK_SECONDS,
)  # fmt: skip


# The rests of runs, by place and by run.
Seen = dict[str, dict[str, list[Amounts]]]


def subject_of(graph: CompiledGraph, pins: Pins) -> str:
    """What runs must have in common to foretell each other: a digest over the graph, the registry of tools
    and the models that play in it, each with its price. SHA-256, hexadecimal."""
    roles = sorted({node.config.role for node in graph.nodes.values() if isinstance(node.config, Asking)})
    usual = [pins.profile_for(role) for role in roles]
    playing = {profile.name for profile in usual} | {profile.cheaper for profile in usual}
    # Whether people see it write, who would take over from it, whose key it has and how many calls it takes
    # at once changes nothing of what a model needs, and older subjects did not know it.
    models = [
        profile.model_dump(mode="json", exclude={"streams", "failover", "own", "secret", "at_once"})
        for profile in pins.profiles
        if profile.name in playing
    ]
    body = {"graph": graph.digest, "registry": pins.registry_digest, "roles": roles, "models": models}
    return compute_digest("expectation", encode_canonical(body))


class Passed(FrozenModel):
    """A place that a run came by, and what it had used by then."""

    key: str
    used: Amounts


class Lived(FrozenModel):
    """One run that came to a result: the places it came by, and all that it used. Runs for one goal have one
    `kind`."""

    run: str
    passed: tuple[Passed, ...]
    used: Amounts
    kind: str = ""


def kind_of_goal(tenant: str, goal: Goal) -> str:
    """What runs for one goal have in common, whenever it is due: a digest that says nothing of it to who has
    another tenant's. SHA-256, hexadecimal."""
    return compute_digest("goal", tenant.encode() + b"\0" + canonical_model(goal.evolve(deadline=None)))


def with_run(lived: Sequence[Lived], one: Lived) -> tuple[Lived, ...]:
    """The newest runs, with `one` as the last of them; a run counts once."""
    others = [held for held in lived if held.run != one.run]
    return tuple((*others, one)[-KEPT:])


def expected_of(lived: Sequence[Lived]) -> Expected:
    """What runs like these are to be expected to need, from each place that enough of them came by, and after
    each number of actions wherever they were: runs that choose their own way seldom meet at one place.

    A run that came by a place more than once counts there with its least and its greatest rest.
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
    return Expected(
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
    """The places that most runs came by, where enough did."""
    runs = Counter({key: len(found) for key, found in seen.items() if len(found) >= LEAST})
    return {key: seen[key] for key, _ in runs.most_common(most)}


def _compute_remaining_usage(one: Lived, passed: Passed) -> Amounts:
    return {
        name.value: max(ZERO, one.used.get(name.value, ZERO) - passed.used.get(name.value, ZERO))
        for name in FORETOLD
    }


def _select_first_and_last(rests: list[Amounts]) -> list[Amounts]:
    """Of one run's rests from one place the first and the last, which are its greatest and its least."""
    return [rests[0]] if len(rests) == 1 else [rests[0], rests[-1]]


def _compute_lower_bounds(by_run: Mapping[str, list[Amounts]]) -> dict[str, Decimal]:
    return {name: lower for name, (lower, _) in _compute_usage_bounds(by_run).items()}


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
