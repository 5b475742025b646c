"""What the newest runs of a workflow teach those that follow: bounds of the rest, by place (R-BUDGET-4)."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal

from budgets.core.dimension import Dimension
from budgets.core.forecast import KEPT, LEAST, observed
from orchestrator.core.asking import Asking
from orchestrator.core.effects import Amounts
from orchestrator.core.expecting import any_place
from orchestrator.core.graph import CompiledGraph
from orchestrator.core.manifest import Expected, Pins
from orchestrator.core.spending import ZERO
from orchestrator.core.value import Value
from traces.core.canonical import canonical, digest

# A manifest carries at most so many places, those that most runs came by.
PLACES = 32
NUMBERS = 16
FORETOLD = (
    Dimension.STEPS, Dimension.MODEL_TURNS, Dimension.TOOL_CALLS, Dimension.EXTERNAL_CALLS,
    Dimension.INPUT_TOKENS, Dimension.OUTPUT_TOKENS, Dimension.TOTAL_TOKENS, Dimension.COST_USD,
    Dimension.WALL_CLOCK_SECONDS,
)  # fmt: skip


def subject_of(graph: CompiledGraph, pins: Pins) -> str:
    """What runs must have in common to foretell each other: a digest over the graph, the registry of tools
    and the models that play in it, each with its price. SHA-256, hexadecimal."""
    roles = sorted({node.config.role for node in graph.nodes.values() if isinstance(node.config, Asking)})
    usual = [pins.profile_for(role) for role in roles]
    playing = {profile.name for profile in usual} | {profile.cheaper for profile in usual}
    models = [profile.model_dump(mode="json") for profile in pins.profiles if profile.name in playing]
    body = {"graph": graph.digest, "registry": pins.registry_digest, "roles": roles, "models": models}
    return digest("expectation", canonical(body))


class Passed(Value):
    """A place that a run came by, and what it had used by then."""

    key: str
    used: Amounts


class Lived(Value):
    """One run that came to a result: the places it came by, and all that it used."""

    run: str
    passed: tuple[Passed, ...]
    used: Amounts


def with_run(lived: Sequence[Lived], one: Lived) -> tuple[Lived, ...]:
    """The newest runs, with `one` as the last of them; a run counts once."""
    others = [held for held in lived if held.run != one.run]
    return tuple((*others, one)[-KEPT:])


def expected_of(lived: Sequence[Lived]) -> Expected:
    """What runs like these are to be expected to need, from each place that enough of them came by, and after
    each number of actions wherever they were: runs that choose their own way seldom meet at one place.

    A run that came by a place more than once counts there with its least and its greatest rest.
    """
    seen: dict[str, dict[str, list[Amounts]]] = defaultdict(dict)
    anywhere: dict[str, dict[str, list[Amounts]]] = defaultdict(dict)
    for one in lived:
        for passed in one.passed:
            rest = _rest(one, passed)
            seen[passed.key].setdefault(one.run, []).append(rest)
            anywhere[any_place(passed.key)].setdefault(one.run, []).append(rest)
    places = {**_most(seen, PLACES), **_most(anywhere, NUMBERS)}
    return Expected(runs=len(lived), rest={key: _bounds(places[key]) for key in sorted(places)})


def _most(seen: Mapping[str, Mapping[str, list[Amounts]]], most: int) -> dict[str, list[Amounts]]:
    """The rests of the places that most runs came by, where enough did."""
    runs = Counter({key: len(found) for key, found in seen.items() if len(found) >= LEAST})
    return {
        key: [rest for one in seen[key].values() for rest in _ends(one)] for key, _ in runs.most_common(most)
    }


def _rest(one: Lived, passed: Passed) -> Amounts:
    return {
        name.value: max(ZERO, one.used.get(name.value, ZERO) - passed.used.get(name.value, ZERO))
        for name in FORETOLD
    }


def _ends(rests: list[Amounts]) -> list[Amounts]:
    """Of one run's rests from one place the first and the last, which are its greatest and its least."""
    return [rests[0]] if len(rests) == 1 else [rests[0], rests[-1]]


def _bounds(rests: list[Amounts]) -> dict[str, tuple[Decimal, Decimal]]:
    found = {}
    for name in FORETOLD:
        interval = observed(name, [rest[name.value] for rest in rests])
        if interval.upper is not None:
            found[name.value] = (interval.lower, interval.upper)
    return found
