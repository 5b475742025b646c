"""Where each value of a call comes from, leaf by leaf, worst source first (R-TOOL-16).

A fixed call's node says where its arguments are taken from. A model says nothing that counts: its values are
looked up in what the run has read and been given. What an untrusted text may have brought in counts as
brought in; what is to be trusted has to stand in the goal or in a trusted fact as it is, and a trusted fact
vouches for nothing that was only put into its tool.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from orchestrator.core.inputs import MISSING, inputs, pointed
from orchestrator.core.nodes.tool import Config, Constant, FromDraft, FromFact, FromInput, FromRun
from orchestrator.core.nodes.tool import Source as Declared
from orchestrator.core.origin.lookup import Text, resembles, stated, words_of
from orchestrator.core.origin.texts import layers, skeleton
from orchestrator.core.origin.things import EMAIL, NUMBER, URL, Kind, kind_of, things_in
from orchestrator.core.policy import Origin, beneath
from orchestrator.core.state import Call, Fact
from orchestrator.core.step import View

MOST_TEXT = 4_000_000
LONGEST_SEARCHED = 100_000
LEAST_CARRIED = 6
MOST_THINGS = 40
DEEPEST_SUM = 3
CALCULATOR = "calculator"
FAILURE = "a failed call"
UNDO = "undo"
UNDO_SINCE = 4


class Source(NamedTuple):
    """An origin and what it refers to (a fact id, a pointer into the inputs, a node, a person)."""

    origin: Origin
    reference: str


class Traced(NamedTuple):
    """One leaf. `said`: the goal states exactly this; `vouched`: it is a leaf of a result that the boundary
    grants; `carries`: it is an address that carries what was read on the way."""

    source: Source
    kind: Kind
    said: bool = False
    vouched: bool = False
    carries: bool = False


class _Place(NamedTuple):
    source: Source
    text: Text
    fact: Fact | None = None


NOWHERE = Source("model", "")
_RANK: dict[Origin, int] = {
    "goal": 0, "plan": 0, "person": 0, "trusted_fact": 1, "model": 2, "untrusted_observation": 3,
}  # fmt: skip


def worst(*sources: Source) -> Source:
    """The one that is trusted least; the first of equals."""
    return max(sources, key=lambda source: _RANK[source.origin])


class Tracer:
    """Looks up the leaves of one call. What it reads of the desk is read once."""

    def __init__(self, view: View, call: Call) -> None:
        self.view, self.call = view, call

    def trace(self, value: Any) -> dict[str, Traced]:
        """Each leaf of the arguments, by JSON pointer."""
        return {pointer: self._leaf(pointer, leaf) for pointer, leaf in leaves(value, "")}

    def _leaf(self, pointer: str, leaf: Any) -> Traced:
        kind = kind_of(pointer, leaf)
        said = bool(text := words_of(leaf)) and stated(text, self.goal)
        if self.call.edited:
            by = self.call.grant.by if self.call.grant else ""
            return Traced(Source("person", by), kind, said)
        if (known := undo_source(self.view, self.call, pointer, text)) is not None:
            return Traced(known, kind, said)
        node = self.view.graph.nodes.get(self.call.by)
        if node is not None and node.kind == "tool":
            return Traced(declared_for(self.view, self.call, node.config, pointer), kind, said)
        return Traced(self._found(kind, text), kind, said, self._vouched(leaf), self._carries(kind, text))

    # -- what the run has read and been given

    @cached_property
    def goal(self) -> Text:
        """The goal's objective and inputs, with the answers of the submitter."""
        given = inputs(self.view.manifest.goal, self.view.state, self.view.desk)
        return Text(f"{self.view.manifest.goal.objective}\n{words_of(given)}")

    @cached_property
    def places(self) -> tuple[_Place, ...]:
        """Untrusted texts first, the newest before older ones, as far as there is room."""
        return tuple(sorted(self._places(), key=lambda place: place.source.origin == "trusted_fact"))

    def _places(self) -> Iterator[_Place]:
        state, desk = self.view.state, self.view.desk
        failed = [failure for failure in state.failures if failure.observation is not None]
        desk.require([*(f.digest for f in state.facts.values()), *(f.observation or "" for f in failed)])
        room = MOST_TEXT
        for name, fact in reversed(state.facts_in_order()):
            text = words_of(desk.json(fact.digest))[: max(0, room)]
            room -= len(text)
            yield _Place(of_fact(name, fact), Text(text), fact)
        for failure in failed:
            text = desk.text(failure.observation or "", max(0, room))
            room -= len(text)
            yield _Place(Source("untrusted_observation", FAILURE), Text(text))

    # -- one value

    def _found(self, kind: Kind, text: str) -> Source:
        if not text.strip():
            return NOWHERE
        whole = self._whole(text[:LONGEST_SEARCHED])
        if whole.origin == "untrusted_observation":
            return whole
        if kind == "text" or (whole is NOWHERE and len(text.split()) > 1):
            return worst(whole, *(self._whole(one) for one in _things(text)))
        return self._composed(kind, text) if whole is NOWHERE else whole

    def _whole(self, text: str, depth: int = 0) -> Source:
        """The worst place it stands in; an untrusted one if it resembles anything of it."""
        trusted: Source | None = None
        for place in self.places:
            if place.source.origin == "untrusted_observation":
                if resembles(text, place.text):
                    return place.source
            elif trusted is None and stated(text, place.text):
                trusted = self._of_trusted(place, text, depth)
        if trusted is not None:
            return trusted
        return Source("goal", "") if stated(text, self.goal) else NOWHERE

    def _of_trusted(self, place: _Place, text: str, depth: int) -> Source | None:
        """A trusted tool vouches for what it knows, not for what it was given, nor for a sum of that."""
        given = self._given(place.source.reference)
        if given is None:
            return place.source
        tool = self.view.pins.by_name.get(place.fact.tool) if place.fact is not None else None
        if tool is not None and tool.category == CALCULATOR:
            numbers = NUMBER.findall(given)
            if depth >= DEEPEST_SUM or not numbers:
                return None
            return worst(place.source, *(self._whole(number, depth + 1) for number in numbers[:MOST_THINGS]))
        return None if resembles(text, Text(given)) else place.source

    def _given(self, fact: str) -> str | None:
        """The arguments that a model put into the tool of a trusted fact; None where none did."""
        held = self.view.state.echoes.get(fact)
        return None if held is None else words_of(self.view.desk.json(held))

    def _composed(self, kind: Kind, text: str) -> Source:
        """An address by its parts: as good as the worst of them."""
        parts = _parts(kind, text)
        return worst(*(self._whole(part) for part in parts)) if len(parts) > 1 else NOWHERE

    def _vouched(self, leaf: Any) -> bool:
        """Whether it is a leaf of a result that the boundary grants as a source."""
        for granted in self.view.pins.boundary.scope.sources:
            tool, _, pointer = granted.partition("/")
            for place in self.places:
                fact = place.fact
                if fact is None or fact.tool != tool:
                    continue
                if pointed(self.view.desk.json(fact.digest), "/" + pointer) == leaf:
                    return True
        return False

    def _carries(self, kind: Kind, text: str) -> bool:
        """Whether an address holds what stands in a fact and not in the goal. One that was read as it is
        carries nothing that its author did not know."""
        if kind != "url" or any(skeleton(text) in place.text.bare for place in self.places):
            return False
        return any(self._read(part) for part in _laden(text))

    def _read(self, part: str) -> bool:
        told = [layer for layer in layers(part) if len(skeleton(layer)) >= LEAST_CARRIED]
        return any(
            skeleton(layer) in place.text.bare and not stated(layer, self.goal)
            for layer in told
            for place in self.places
        )


def undo_source(view: View, call: Call, pointer: str, text: str) -> Source | None:
    """Where an argument of an undo comes from by the way back that its tool declares: out of the declaration,
    or out of the deed's result, which is as good as its tool. None for what the deed itself was given, also
    where it came back out of it: that is looked up."""
    unwinding = view.state.unwinding
    if unwinding is None or call.by != UNDO or view.manifest.core_version < UNDO_SINCE:
        return None
    deed = view.state.deeds[unwinding.call]
    done = view.pins.by_name[deed.tool]
    name = pointer[1:].partition("/")[0].replace("~1", "/").replace("~0", "~")
    taken = None if done.compensation is None else done.compensation.arguments.get(name)
    if taken is None:
        return Source("plan", UNDO)
    if beneath(taken, "/arguments"):
        return None
    if done.trust == "untrusted":
        return Source("untrusted_observation", deed.tool)
    echoed = resembles(text, Text(words_of(view.desk.json(deed.arguments))))
    return None if echoed else Source("trusted_fact", deed.tool)


# -- what calls are made of


def leaves(value: Any, pointer: str) -> list[tuple[str, Any]]:
    """Every leaf of a JSON value with its pointer."""
    if isinstance(value, dict):
        return [found for key in value for found in leaves(value[key], f"{pointer}/{_escaped(key)}")]
    if isinstance(value, list):
        return [found for n, item in enumerate(value) for found in leaves(item, f"{pointer}/{n}")]
    return [(pointer, value)]


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _things(text: str) -> list[str]:
    """The addresses, accounts and numbers that a text holds."""
    found = things_in(text[:LONGEST_SEARCHED])
    named = (*found.recipients, *found.accounts, *found.urls, *found.references)
    return list(dict.fromkeys(named))[:MOST_THINGS]


def _parts(kind: Kind, text: str) -> list[str]:
    if kind == "url" or URL.match(text):
        return [part for part in (_host(text), *_laden(text)) if part]
    if (found := EMAIL.search(text)) is not None:
        return [part for part in (*found[0].split("@"), EMAIL.sub("", text).strip(" <>\"',;")) if part]
    return []


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return url


def _laden(url: str) -> list[str]:
    """The parts of an address that can carry something: labels of its host, its path, its query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return [url]
    rest = f"{parts.path}/{parts.query}/{parts.fragment}/{parts.username or ''}/{parts.password or ''}"
    labels = (parts.hostname or "").split(".")[:-2]
    pieces = rest.replace("&", "/").replace("=", "/").replace(";", "/").split("/")
    return [piece for piece in (*labels, *pieces) if piece][:MOST_THINGS]


# -- a fixed call: as its node declares


def declared_for(view: View, call: Call, config: Config, pointer: str) -> Source:
    """The source of one leaf of a fixed call."""
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
        return NOWHERE if fact is None else of_fact(source.fact, fact)
    if isinstance(source, FromDraft):
        return NOWHERE
    assert isinstance(source, Constant | FromRun)
    return Source("plan", call.by)


def of_fact(name: str, fact: Fact) -> Source:
    """The origin that a fact lends to its values."""
    return Source("trusted_fact" if fact.trust == "trusted" else "untrusted_observation", name)
