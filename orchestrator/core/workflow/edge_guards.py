"""Edge guards: named deterministic predicates over the state, with declared parameters.

A graph names a guard and gives its parameters; the predicate is defined only here. Compilation checks the
parameters once, so that evaluation on the hot path costs a dictionary look-up.

Spec: R-GRAPH-1, R-GRAPH-2.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from types import MappingProxyType

from pydantic import Field, ValidationError

from orchestrator.core.common.frozen_model import FrozenModel, Slug, Small
from orchestrator.core.domain.graph import GuardSpec
from orchestrator.core.domain.run_state import RunState

MODEL = "model"
Parameters = Mapping[str, Small]


class NoParameters(FrozenModel):
    """No parameters."""


class OfFact(FrozenModel):
    """A fact by its id."""

    fact: Slug


class FieldIs(FrozenModel):
    """A small value of a fact and what it must equal, type included."""

    fact: Slug
    field: str = Field(min_length=1, max_length=64)
    equals: Small


class FieldAtMost(FrozenModel):
    """A number among the small values of a fact; `amount` is a whole number or a decimal as text."""

    fact: Slug
    field: str = Field(min_length=1, max_length=64)
    amount: int | str = Field(union_mode="left_to_right")


class ByNode(FrozenModel):
    """A tool node's id, or `model`."""

    node: Slug


class Limit(FrozenModel):
    """A number of times."""

    limit: int = Field(ge=1, le=1_000)


class Visits(FrozenModel):
    """A node with a declared cycle limit, and how often it may have been entered."""

    node: Slug
    times: int = Field(ge=1, le=10_000)


class Error(FrozenModel):
    """A closed code for what went wrong with a call."""

    error: Slug


class OfIntent(FrozenModel):
    """An intent that classify_intent declares."""

    intent: Slug


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """One guard: its name, its parameters, its predicate, and the sentence for pages and faults."""

    name: str
    parameters: type[FrozenModel]
    asks: Callable[[RunState, Parameters], bool]
    sentence: str


def _find_requester(state: RunState) -> str | None:
    """Return the requester of the current call.

    That is the first call of the batch, else of the queue, else the last call that was answered.
    """
    if state.batch:
        return state.batch[0].by
    if state.queue:
        return state.queue[0].by
    return state.last_askers[0] if state.last_askers else None


def _parse_decimal(value: Small) -> Decimal | None:
    """Return the value as a number, or None if it is not a number (a fact's text can be anything)."""
    if value is None or isinstance(value, bool):
        return None
    try:
        number = Decimal(value)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _get_fact_field(state: RunState, parameters: Parameters) -> Small:
    fact = state.facts.get(str(parameters["fact"]))
    return None if fact is None else fact.values.get(str(parameters["field"]))


def _fact_is(state: RunState, parameters: Parameters) -> bool:
    found, wanted = _get_fact_field(state, parameters), parameters["equals"]
    # True == 1 in Python, but a policy that says true differs from one that says 1.
    return type(found) is type(wanted) and found == wanted


def _fact_at_most(state: RunState, parameters: Parameters) -> bool:
    found, limit = _parse_decimal(_get_fact_field(state, parameters)), _parse_decimal(parameters["amount"])
    return found is not None and limit is not None and found <= limit


def _coerce_count(value: Small) -> int:
    return value if isinstance(value, int) else 0


_ALL = (
    Guard(
        name="queue_left", parameters=NoParameters, sentence="A requested call still waits for its turn.",
        asks=lambda state, _: bool(state.queue),
    ),
    Guard(
        name="queue_empty", parameters=NoParameters, sentence="Every requested call has its result.",
        asks=lambda state, _: not state.queue,
    ),
    Guard(
        name="facts", parameters=OfFact, sentence="The fact was committed.",
        asks=lambda state, given: given["fact"] in state.facts,
    ),
    Guard(name="fact_is", parameters=FieldIs, sentence="A value of the fact is exactly this.", asks=_fact_is),
    Guard(
        name="fact_at_most", parameters=FieldAtMost, sentence="A number of the fact is at most this.",
        asks=_fact_at_most,
    ),
    Guard(
        name="asked_by", parameters=ByNode, sentence="The call at hand was asked for by this node.",
        asks=lambda state, given: _find_requester(state) == given["node"],
    ),
    Guard(
        name="step_failed", parameters=NoParameters, sentence="The last call that was carried out failed.",
        asks=lambda state, _: state.counters.errors > 0,
    ),
    Guard(
        name="failed_with", parameters=Error, sentence="The last call carried out failed in this way.",
        asks=lambda state, given: bool(state.counters.errors and state.failures)
        and state.failures[-1].error == given["error"],
    ),
    Guard(
        name="repairs_left", parameters=Limit, sentence="Fewer drafts than this have failed their checks.",
        asks=lambda state, given: state.counters.repairs < _coerce_count(given["limit"]),
    ),
    Guard(
        name="malformed_spent", parameters=Limit,
        sentence="The arguments of one tool came malformed in this many turns running.",
        asks=lambda state, given: any(
            one.turns >= _coerce_count(given["limit"]) for one in state.malformed.values()
        ),
    ),
    Guard(
        name="refusals_left", parameters=Limit, sentence="People have refused fewer calls than this.",
        asks=lambda state, given: state.counters.refusals < _coerce_count(given["limit"]),
    ),
    Guard(
        name="refusals_spent", parameters=Limit, sentence="People have refused this many calls or more.",
        asks=lambda state, given: state.counters.refusals >= _coerce_count(given["limit"]),
    ),
    Guard(
        name="visited_less_than", parameters=Visits, sentence="The node was entered fewer times than this.",
        asks=lambda state, given: state.visits.get(str(given["node"]), 0) < _coerce_count(given["times"]),
    ),
    Guard(
        name="edited", parameters=NoParameters, sentence="A person edited the call at hand.",
        asks=lambda state, _: any(call.edited for call in (*state.batch, *state.queue[:1])),
    ),
    Guard(
        name="intent_is", parameters=OfIntent, sentence="The goal was classified as this intent.",
        asks=lambda state, given: state.intent == given["intent"],
    ),
)  # fmt: skip
GUARDS: Mapping[str, Guard] = MappingProxyType({guard.name: guard for guard in _ALL})


def holds(guard: GuardSpec, state: RunState) -> bool:
    """Return whether the guard holds.

    Raises: KeyError for an unknown guard, which validation excludes.
    """
    return GUARDS[guard.name].asks(state, guard.parameters)


def validate_guard(guard: GuardSpec) -> list[str]:
    """Return the faults of a guard's name or parameters, one sentence each; empty if there are none."""
    known = GUARDS.get(guard.name)
    if known is None:
        return [f"there is no guard called {guard.name!r}"]
    try:
        parsed = known.parameters.model_validate(guard.parameters, strict=True)
    except ValidationError as error:
        return [
            f"guard {guard.name}: {'.'.join(map(str, fault['loc'])) or 'parameters'}: {fault['msg']}"
            for fault in error.errors(include_url=False)
        ]
    if isinstance(parsed, FieldAtMost) and _parse_decimal(parsed.amount) is None:
        return [f"guard {guard.name}: amount: {parsed.amount!r} is no number"]
    return []
