"""A patch leads from one state to the next, and says no more than that."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from tests.proves import proves
from traces.core.canonical import canonical_model, canonical_typed
from traces.core.state_patch import apply_patch, diff_states, select_replaced_entries

NAMES = st.sampled_from(["a", "b", "c", "set", "put", "drop"])
SMALL = st.none() | st.booleans() | st.integers(0, 1) | st.sampled_from(["x", "y"])


class Inner(BaseModel):
    """A value in a value."""

    model_config = ConfigDict(frozen=True)
    count: int | bool | None = 0
    values: Mapping[str, str | int | bool | None] = {}


class State(BaseModel):
    """A state as the machine has them."""

    model_config = ConfigDict(frozen=True)
    number: int = 0
    word: str | int | bool | None = ""
    queue: tuple[Inner, ...] = ()
    facts: Mapping[str, Inner] = {}
    usage: Mapping[str, Decimal] = {}
    perhaps: Mapping[str, str] | None = None


INNER = st.builds(
    Inner, count=st.integers(0, 1) | st.booleans(), values=st.dictionaries(NAMES, SMALL, max_size=3)
)
STATES = st.builds(
    State,
    number=st.integers(0, 2),
    word=SMALL,
    queue=st.lists(INNER, max_size=2).map(tuple),
    facts=st.dictionaries(NAMES, INNER, max_size=3),
    usage=st.dictionaries(NAMES, st.sampled_from([Decimal(1), Decimal("1.0"), Decimal("2.5")]), max_size=3),
    perhaps=st.none() | st.dictionaries(NAMES, st.just("v"), max_size=2),
)


def dumped(model: BaseModel) -> dict[str, Any]:
    """A state as it is stored."""
    value: dict[str, Any] = orjson.loads(canonical_model(model))
    return value


def written(patch: dict[str, Any]) -> dict[str, Any]:
    """A patch as it is stored."""
    value: dict[str, Any] = orjson.loads(canonical_typed(patch))
    return value


@proves("R-SESS-4", part="patch")
@given(STATES, STATES)
def test_a_patch_leads_from_one_state_to_the_other(before: State, after: State) -> None:
    found = apply_patch(dumped(before), written(diff_states(before, after)))
    assert canonical_typed(found) == canonical_model(after)


@given(STATES)
def test_nothing_changed_is_an_empty_patch(state: State) -> None:
    assert diff_states(state, state) == {}
    assert diff_states(state, State.model_validate(state.model_dump())) == {}


def test_only_the_entries_that_changed_are_said() -> None:
    facts = {str(number): Inner(count=number) for number in range(100)}
    later = {**facts, "7": Inner(count=77), "new": Inner()}
    del later["3"]
    patch = diff_states(State(facts=facts), State(facts=later))
    assert patch == {"facts": {"put": {"7": Inner(count=77), "new": Inner()}, "drop": ["3"]}}


@given(st.permutations("abcde"), st.sets(st.sampled_from("abcde")), st.sets(st.sampled_from("abcdefg")))
def test_others_are_the_entries_that_are_not_the_very_same(
    order: list[str], gone: set[str], fresh: set[str]
) -> None:
    was = {name: Inner(values={"n": name}) for name in "abcde"}
    kept = {name: was[name] for name in order if name not in gone}
    now = {**kept, **{name: Inner() for name in sorted(fresh)}}
    assert select_replaced_entries(was, now) == {name: now[name] for name in fresh}
    appended = {**was, **{name: Inner() for name in sorted(fresh)}}
    assert select_replaced_entries(was, appended) == {name: appended[name] for name in fresh}


def test_one_and_true_are_equal_and_not_the_same() -> None:
    assert diff_states(State(word=1), State(word=True)) == {"word": {"set": True}}


def test_a_state_is_not_changed_by_a_patch() -> None:
    state = dumped(State(facts={"a": Inner()}))
    apply_patch(state, {"facts": {"drop": ["a"]}, "number": {"set": 4}})
    assert state == dumped(State(facts={"a": Inner()}))
