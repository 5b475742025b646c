"""Where each argument value comes from, shown in the packet (R-APPR-2, the ground of R-TOOL-16).

A fixed call's node says where each of its arguments is taken from. A model says nothing that counts: its
values are looked up, as whole words, in what the run has read and been given; what stands nowhere is the
model's own. A fact goes before the goal and an untrusted fact before all, so that nothing looks better
than its worst source.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Literal, NamedTuple
from unicodedata import normalize

from orchestrator.core.inputs import AMOUNT, MISSING, inputs, pointed
from orchestrator.core.nodes.tool import Config, Constant, FromDraft, FromFact, FromInput, FromRun
from orchestrator.core.nodes.tool import Source as Declared
from orchestrator.core.state import Call, Fact
from orchestrator.core.step import View

Origin = Literal["goal", "plan", "trusted_fact", "untrusted_observation", "person", "model"]
# What joins two parts of one word: the 100 of A-100, of 3.100 or of 100@example.org is no word of its own.
BEFORE, AFTER = r"(?<!\w)(?<!\w[-.@/:+])", r"(?!\w)(?![-.@/:+]\w)"
NUMBER = re.compile(rf"(?<![-+]){BEFORE}-?[0-9]{{1,18}}(?:\.[0-9]{{1,12}})?{AFTER}", re.ASCII)


class Source(NamedTuple):
    """An origin and what it refers to (a fact id, a pointer into the inputs, a node, a person)."""

    origin: Origin
    reference: str


def trace_arguments(view: View, call: Call, value: dict[str, Any]) -> dict[str, Source]:
    """Each leaf of the arguments, by JSON pointer, with its source."""
    found = leaves(value, "")
    if call.edited:
        person = Source("person", call.grant.by if call.grant else "")
        return {pointer: person for pointer, _ in found}
    node = view.graph.nodes.get(call.by)
    if node is not None and node.kind == "tool":
        return {pointer: _declared_for(view, call, node.config, pointer) for pointer, _ in found}
    places = list(_places(view))
    return {pointer: _looked_up(places, leaf) for pointer, leaf in found}


def leaves(value: Any, pointer: str) -> list[tuple[str, Any]]:
    """Every leaf of a JSON value with its pointer."""
    if isinstance(value, dict):
        return [found for key in value for found in leaves(value[key], f"{pointer}/{_escaped(key)}")]
    if isinstance(value, list):
        return [found for n, item in enumerate(value) for found in leaves(item, f"{pointer}/{n}")]
    return [(pointer, value)]


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


# -- a fixed call: as its node declares


def _declared_for(view: View, call: Call, config: Config, pointer: str) -> Source:
    declared = {f"/{_escaped(name)}": source for name, source in config.arguments.items()}
    source = declared.get("/" + pointer.split("/")[1]) if pointer else None
    return Source("plan", call.by) if source is None else _from_declared(view, call, source)


def _from_declared(view: View, call: Call, source: Declared) -> Source:
    if isinstance(source, FromInput):
        given = pointed(inputs(view.manifest.goal, view.state, view.desk), source.pointer)
        if given is MISSING and source.otherwise is not None:
            return _from_declared(view, call, source.otherwise)
        return Source("goal", source.pointer)
    if isinstance(source, FromFact):
        fact = view.state.facts.get(source.fact)
        return Source("model", "") if fact is None else _from_fact(source.fact, fact)
    if isinstance(source, FromDraft):
        return Source("model", "")
    assert isinstance(source, Constant | FromRun)
    return Source("plan", call.by)


def _from_fact(name: str, fact: Fact) -> Source:
    return Source("trusted_fact" if fact.trust == "trusted" else "untrusted_observation", name)


# -- a model's call: as its values are found


def _places(view: View) -> Iterator[tuple[Source, str]]:
    """What the run has read and been given, as normal text: untrusted facts, trusted ones, the goal."""
    facts = view.state.facts_in_order()
    view.desk.require(fact.digest for _, fact in facts)
    for name, fact in sorted(facts, key=lambda item: item[1].trust == "trusted"):
        yield _from_fact(name, fact), _normal("\n".join(_words(view.desk.json(fact.digest))))
    given = inputs(view.manifest.goal, view.state, view.desk)
    yield Source("goal", ""), _normal("\n".join([view.manifest.goal.objective, *_words(given)]))


def _words(value: Any) -> Iterator[str]:
    """Every name and every value in a JSON value."""
    if isinstance(value, dict):
        for key in value:
            yield key
            yield from _words(value[key])
    elif isinstance(value, list):
        for item in value:
            yield from _words(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _looked_up(places: list[tuple[Source, str]], leaf: Any) -> Source:
    text = _normal(" ".join(_words(leaf)))
    if text:
        for source, place in places:
            if _stands_in(text, place):
                return source
    return Source("model", "")


def _stands_in(text: str, place: str) -> bool:
    """Whether the text is a whole word (or words) of the place; a number is found by its amount."""
    if AMOUNT.fullmatch(text):
        return any(Decimal(number) == Decimal(text) for number in NUMBER.findall(place))
    return text in place and re.search(BEFORE + re.escape(text) + AFTER, place) is not None


def _normal(text: str) -> str:
    """One spelling for what reads the same: compatibility forms, case, white space."""
    return " ".join(normalize("NFKC", text).casefold().split())
