"""Taint tracking: find the source of each value of a call, leaf by leaf, worst first (R-TOOL-16).

A fixed call's node declares where its arguments come from. A model's own statement does not count: its
values are looked up in what the run has read and been given. A value that an untrusted text may have
introduced counts as introduced by it. A trusted value must appear unchanged in the goal or in a trusted
fact, and a trusted fact confirms nothing that was only an argument of its tool.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from orchestrator.core.common.argument_parsing import Arguments, parse_arguments
from orchestrator.core.domain.run_state import Call, Fact, RunState
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.guardrails.exfiltration import (
    LONGEST_TEXT,
    MOST_ADDRESSES,
    ObservedText,
    address_carries,
    addresses_in,
    goes_unasked,
    quotes_across,
    sent_by,
    text_carries,
)
from orchestrator.core.guardrails.taint_sources import (
    NOWHERE,
    Source,
    declared_for,
    flatten_json_leaves,
    least_trusted_source,
    of_fact,
    undo_source,
)
from orchestrator.core.guardrails.value_parts import (
    LONGEST_SEARCHED,
    MOST_THINGS,
    extract_identifiers,
    split_value_parts,
)
from orchestrator.core.policy.provenance.value_kinds import EMAIL, NUMBER, Kind, kind_of
from orchestrator.core.policy.provenance.value_matching import (
    SearchableText,
    is_stated_in_text,
    may_come_from_text,
    words_of,
)
from orchestrator.core.policy.rules import argument_of
from orchestrator.core.policy.task_scope import TaskScope, match_task_scope
from orchestrator.core.workflow.goal_inputs import resolve_pointer
from orchestrator.core.workflow.node_protocol import NodeContext
from orchestrator.core.workflow.untrusted_inputs import split_inputs

MOST_TEXT = 4_000_000
DEEPEST_SUM = 3
MOST_SEAMS = 20
SEAM = 80
CALCULATOR = "calculator"
FAILURE = "a failed call"


class TaintedLeaf(NamedTuple):
    """One leaf with its source.

    `said`: the goal states exactly this value; `vouched`: it is a leaf of a result that the boundary
    trusts; `carries`: it carries out content that was read (core/guardrails/exfiltration.py).
    """

    source: Source
    kind: Kind
    said: bool = False
    vouched: bool = False
    carries: bool = False


class _Place(NamedTuple):
    source: Source
    text: SearchableText
    fact: Fact | None = None
    tool: str = ""
    own: tuple[SearchableText, ...] = ()


class TaintTracker:
    """Looks up the leaves of one call. Content from the store is read once."""

    def __init__(self, view: NodeContext, call: Call) -> None:
        self.view, self.call = view, call
        self._joined: bool | None = None

    def trace(self, value: Any) -> dict[str, TaintedLeaf]:
        """Return each leaf of the arguments with its source, by JSON pointer."""
        found = flatten_json_leaves(value, "")
        traced = {pointer: self._leaf(pointer, leaf) for pointer, leaf in found}
        texts = {pointer: words_of(leaf) for pointer, leaf in found}
        return {
            pointer: one._replace(carries=self._is_model_chosen(one) and self._carries(pointer, one, texts))
            for pointer, one in traced.items()
        }

    def _leaf(self, pointer: str, leaf: Any) -> TaintedLeaf:
        kind = kind_of(pointer, leaf)
        said = bool(text := words_of(leaf)) and is_stated_in_text(text, self.goal)
        if self.call.edited and (argument_of(pointer), text) not in self.proposed_values:
            by = self.call.grant.by if self.call.grant else ""
            return TaintedLeaf(Source("person", by), kind, said)
        if (known := undo_source(self.view, self.call, pointer, text)) is not None:
            return TaintedLeaf(known, kind, said)
        node = self.view.graph.nodes.get(self.call.by)
        if node is not None and node.kind == "tool":
            source = declared_for(self.view, self.call, node.config, pointer)
        else:
            source = self._found(kind, text)
        return TaintedLeaf(source, kind, said, self.vouches(leaf))

    @cached_property
    def proposed_values(self) -> frozenset[tuple[str, str]]:
        """Return the values of a call before a person edited it, each with its argument.

        A value that the person left unchanged keeps its source.
        """
        before = parse_arguments(self.view.desk.read(self.call.raw))
        found = flatten_json_leaves(before.value, "") if isinstance(before, Arguments) else []
        return frozenset((argument_of(pointer), words_of(leaf)) for pointer, leaf in found)

    # -- what the run has read and been given

    @cached_property
    def goal(self) -> SearchableText:
        """Return the goal's objective and trusted inputs, with the answers of the submitter."""
        return SearchableText(f"{self.view.manifest.goal.objective}\n{words_of(split_inputs(self.view)[0])}")

    @cached_property
    def places(self) -> tuple[_Place, ...]:
        """Return the texts: untrusted ones first, newer before older, as far as there is room."""
        return tuple(sorted(self._places(), key=lambda place: place.source.origin == "trusted_fact"))

    def _places(self) -> Iterator[_Place]:
        state, desk = self.view.state, self.view.desk
        failed = [failure for failure in state.failures if failure.observation is not None]
        read = (*(fact.digest for fact in state.facts.values()), *(f.observation or "" for f in failed))
        desk.require([*read, *(state.echoes[name] for name in sorted(state.echoes))])
        written, room = self._collect_model_texts(), MOST_TEXT
        for name, fact in reversed(state.facts_in_order()):
            text = words_of(desk.json(fact.digest))[: max(0, room)]
            room -= len(text)
            yield _Place(of_fact(name, fact), SearchableText(text), fact, fact.tool, written[name])
        for failure in failed:
            text = desk.text(failure.observation or "", max(0, room))
            room -= len(text)
            source = Source("untrusted_observation", FAILURE)
            yield _Place(source, SearchableText(text), tool=failure.tool, own=written[""])
        for name, value in split_inputs(self.view)[1].items():
            source = Source("untrusted_observation", f"/{name}")
            yield _Place(source, SearchableText(words_of(value)[: max(0, room)]))

    def _collect_model_texts(self) -> dict[str, tuple[SearchableText, ...]]:
        """Return what the model had written when each fact came, with its own call; all of it under ""."""
        state = self.view.state
        asked = [_asked_in(state, key) for key in sorted(state.echoes)]
        told = [(record, self._words(digest, tool)) for record, tool, digest in sorted(asked)]
        found = {
            name: tuple(text for record, text in told if record <= fact.record)
            for name, fact in state.facts.items()
        }
        return {**found, "": tuple(text for _, text in told)}

    def _words(self, digest: str, tool: str) -> SearchableText:
        """Return the arguments of a model's call, without a reading call's addresses.

        Those addresses were judged when they were sent.
        """
        value, spec = self.view.desk.json(digest), self.view.pins.by_name.get(tool)
        reads = spec is not None and not spec.is_mutating
        told = [
            leaf
            for at, leaf in flatten_json_leaves(value, "")
            if not (reads and _is_absolute_url(at, words_of(leaf)))
        ]
        return SearchableText(words_of(told))

    # -- one value

    def _found(self, kind: Kind, text: str) -> Source:
        if not text.strip():
            return NOWHERE
        whole = self._whole(text[:LONGEST_SEARCHED])
        if whole.origin == "untrusted_observation":
            return whole
        if kind == "text" or (whole is NOWHERE and len(text.split()) > 1):
            named = extract_identifiers(text)
            rest = [NOWHERE] if len(named) > MOST_THINGS else []
            return least_trusted_source(whole, *(self._whole(one) for one in named[:MOST_THINGS]), *rest)
        return self._find_composed_source(kind, text) if whole is NOWHERE else whole

    def _whole(self, text: str, depth: int = 0) -> Source:
        """Return the worst place that contains the text; an untrusted one if the text resembles any of it."""
        trusted: Source | None = None
        for place in self.places:
            if place.source.origin == "untrusted_observation":
                if may_come_from_text(text, place.text):
                    return place.source
            elif trusted is None and is_stated_in_text(text, place.text):
                trusted = self._of_trusted(place, text, depth)
        if trusted is not None:
            return trusted
        return Source("goal", "") if is_stated_in_text(text, self.goal) else NOWHERE

    def _of_trusted(self, place: _Place, text: str, depth: int) -> Source | None:
        """Return the source that a trusted place gives to a text.

        A trusted tool confirms its own knowledge, not its arguments, nor a sum computed from them.
        """
        given = self._find_given_arguments(place.source.reference)
        if given is None:
            return place.source
        tool = self.view.pins.by_name.get(place.fact.tool) if place.fact is not None else None
        if tool is not None and tool.category == CALCULATOR:
            numbers = NUMBER.findall(given)
            if depth >= DEEPEST_SUM or not numbers or len(numbers) > MOST_THINGS:
                return None
            return least_trusted_source(place.source, *(self._whole(number, depth + 1) for number in numbers))
        return None if may_come_from_text(text, SearchableText(given)) else place.source

    def _find_given_arguments(self, fact: str) -> str | None:
        """Return the arguments that a model gave to the tool of a trusted fact; None if no model did."""
        held = self.view.state.echoes.get(fact)
        return None if held is None else words_of(self.view.desk.json(held))

    def _find_composed_source(self, kind: Kind, text: str) -> Source:
        """Return the source of an address by its parts: the least trusted of them."""
        parts = split_value_parts(kind, text)
        if len(parts) <= 1 or len(parts) > MOST_THINGS:
            return NOWHERE
        return least_trusted_source(*(self._whole(part) for part in parts))

    def vouches(self, leaf: Any) -> bool:
        """Return whether the leaf is part of a result that the boundary trusts as a source."""
        for granted in self.view.pins.boundary.scope.sources:
            tool, _, pointer = granted.partition("/")
            for place in self.places:
                fact = place.fact
                if fact is None or fact.tool != tool:
                    continue
                if resolve_pointer(self.view.desk.json(fact.digest), "/" + pointer) == leaf:
                    return True
        return False

    # -- exfiltration

    @cached_property
    def scope(self) -> TaskScope:
        """Return what the goal names, as pinned, and what the submitter has answered since."""
        held = self.view.manifest.scope
        if not self.view.state.answers:
            return held
        return held.with_answers(split_inputs(self.view)[0])

    @cached_property
    def observed_text(self) -> ObservedText:
        """Return all that was read."""
        return _build_observed_text(self.places, self.goal)

    @cached_property
    def elsewhere(self) -> ObservedText:
        """Return what was read, without the results of the server that the call goes to."""
        pins, spec = self.view.pins.by_name, self._tool
        here = spec.remote.origin if spec is not None and spec.remote is not None else ""
        origins = ((place, pins.get(place.tool)) for place in self.places)
        read = [one for one, tool in origins if not (tool and tool.remote and tool.remote.origin == here)]
        return _build_observed_text(read, self.goal)

    @cached_property
    def before(self) -> str:
        """Return the values in the addresses of earlier reading calls of this run."""
        sent = self.view.state.sent
        self.view.desk.require(sent[key] for key in sorted(sent))
        calls = [flatten_json_leaves(self.view.desk.json(sent[key]), "") for key in sorted(sent)]
        urls = [words_of(leaf) for call in calls for pointer, leaf in call if kind_of(pointer, leaf) == "url"]
        return sent_by(urls, self.goal)

    @property
    def _tool(self) -> ToolSpec | None:
        return self.view.pins.by_name.get(self.call.tool)

    def _is_model_chosen(self, one: TaintedLeaf) -> bool:
        """Return whether a model chose the value.

        A value that a workflow fixes or a person enters carries nothing out.
        """
        return self.call.by == "model" and one.source.origin != "person"

    def _carries(self, pointer: str, one: TaintedLeaf, texts: dict[str, str]) -> bool:
        text, spec = texts[pointer], self._tool
        if one.kind == "url":
            others = [name for name in texts if name != pointer and kind_of(name, texts[name]) == "url"]
            before = self.before + sent_by((texts[name] for name in others if name < pointer), self.goal)
            return address_carries(text, self.observed_text, before) or self._beside(pointer, texts)
        within = addresses_in(text, bare=True)
        laden = any(address_carries(url, self.observed_text) for url in within if not self._names(url))
        if laden or len(within) > MOST_ADDRESSES:
            return True
        if spec is None or spec.remote is None or not goes_unasked(self.view, spec):
            return False
        return bool(EMAIL.search(text)) or text_carries(text, self.elsewhere) or self._together(texts)

    def _together(self, texts: dict[str, str]) -> bool:
        """Return whether the call's texts carry content out only when they are joined.

        They are joined in either order with each other, and with those of earlier calls to the same server.
        """
        if self._joined is None:
            told = [text for name, text in texts.items() if kind_of(name, text) != "url"]
            orders = (" ".join(told), " ".join(told[::-1]))
            alone = any(text_carries(one[:LONGEST_TEXT], self.elsewhere) for one in orders)
            self._joined = alone or self._completes(orders[0])
        return self._joined

    def _completes(self, now: str) -> bool:
        earlier = self._told_before
        seams = [(one[-SEAM:], now[:SEAM]) for one in earlier] + [
            (now[-SEAM:], one[:SEAM]) for one in earlier
        ]
        whole = (" ".join(earlier)[-LONGEST_TEXT // 2 :], now[: LONGEST_TEXT // 2])
        return bool(earlier) and quotes_across([*seams, whole], self.elsewhere)

    @property
    def _told_before(self) -> list[str]:
        """Return the texts of the newest earlier calls to the same server, one string for each call."""
        spec, sent = self._tool, self.view.state.sent
        here = spec.remote.origin if spec is not None and spec.remote is not None else ""
        keys = [key for key in sorted(sent) if here and key.partition(" ")[2] == here][-MOST_SEAMS:]
        self.view.desk.require(sent[key] for key in keys)
        told = (flatten_json_leaves(self.view.desk.json(sent[key]), "") for key in keys)
        return [
            " ".join(words_of(leaf) for at, leaf in call if kind_of(at, leaf) != "url") for call in told
        ]  # fmt: skip

    def _beside(self, pointer: str, texts: dict[str, str]) -> bool:
        """Return whether text sent along with an address, in a call without approval, carries content out."""
        if self._tool is None or not goes_unasked(self.view, self._tool):
            return False
        return any(text_carries(text, self.observed_text) for name, text in texts.items() if name != pointer)

    def _names(self, url: str) -> bool:
        grant = self.view.pins.boundary.scope
        return match_task_scope("url", url, self.scope, grant, said=False) == "inside"


# -- text that the model had written


def _asked_in(state: RunState, key: str) -> tuple[int, str, str]:
    """Return the record in which a call of the echoes was settled, its tool and its arguments."""
    if (fact := state.facts.get(key)) is not None:
        return fact.record, fact.tool, state.echoes[key]
    record, tool, _ = key.split(" ", 2)
    return int(record), tool, state.echoes[key]


def _is_absolute_url(pointer: str, text: str) -> bool:
    return kind_of(pointer, text) == "url" and ("://" in text or "www." in text)


# -- observed text


def _build_observed_text(places: Sequence[_Place], goal: SearchableText) -> ObservedText:
    return ObservedText([place.text for place in places], goal, [place.own for place in places])
