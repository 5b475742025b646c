"""Find where each argument value comes from, as the packet shows it (R-APPR-2).

Runs that were admitted with a policy are traced by core/guardrails/taint_tracking.py. The look-up here
serves older runs, whose replay must give the same result.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from unicodedata import normalize

from orchestrator.core.domain.run_state import Call
from orchestrator.core.guardrails.taint_sources import Source, declared_for, flatten_json_leaves, of_fact
from orchestrator.core.guardrails.taint_tracking import TaintTracker
from orchestrator.core.workflow.goal_inputs import AMOUNT, merge_goal_inputs
from orchestrator.core.workflow.node_protocol import NodeContext

# Characters that join two parts of one word: the 100 of A-100, of 3.100 or of 100@example.org is no word of
# its own.
BEFORE, AFTER = r"(?<!\w)(?<!\w[-.@/:+])", r"(?!\w)(?![-.@/:+]\w)"
NUMBER = re.compile(rf"(?<![-+]){BEFORE}-?[0-9]{{1,18}}(?:\.[0-9]{{1,12}})?{AFTER}", re.ASCII)


def trace_arguments(view: NodeContext, call: Call, value: dict[str, Any]) -> dict[str, Source]:
    """Return the source of each leaf of the arguments, by JSON pointer."""
    if view.pins.policy is not None:
        return {pointer: traced.source for pointer, traced in TaintTracker(view, call).trace(value).items()}
    found = flatten_json_leaves(value, "")
    if call.edited:
        person = Source("person", call.grant.by if call.grant else "")
        return {pointer: person for pointer, _ in found}
    node = view.graph.nodes.get(call.by)
    if node is not None and node.kind == "tool":
        return {pointer: declared_for(view, call, node.config, pointer) for pointer, _ in found}
    places = list(_list_source_texts(view))
    return {pointer: _looked_up(places, leaf) for pointer, leaf in found}


def _list_source_texts(view: NodeContext) -> Iterator[tuple[Source, str]]:
    """Yield what the run has read and been given, normalised: untrusted facts, trusted ones, the goal."""
    facts = view.state.facts_in_order()
    view.desk.require(fact.digest for _, fact in facts)
    for name, fact in sorted(facts, key=lambda item: item[1].trust == "trusted"):
        yield (
            of_fact(name, fact),
            _normalize_source_text("\n".join(_collect_words(view.desk.json(fact.digest)))),
        )
    given = merge_goal_inputs(view.manifest.goal, view.state, view.desk)
    yield (
        Source("goal", ""),
        _normalize_source_text("\n".join([view.manifest.goal.objective, *_collect_words(given)])),
    )


def _collect_words(value: Any) -> Iterator[str]:
    """Yield every name and every value in a JSON value."""
    if isinstance(value, dict):
        for key in value:
            yield key
            yield from _collect_words(value[key])
    elif isinstance(value, list):
        for item in value:
            yield from _collect_words(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _looked_up(places: list[tuple[Source, str]], leaf: Any) -> Source:
    text = _normalize_source_text(" ".join(_collect_words(leaf)))
    if text:
        for source, place in places:
            if _stands_in(text, place):
                return source
    return Source("model", "")


def _stands_in(text: str, place: str) -> bool:
    """Return whether the text is a whole word (or words) of the place; a number is matched by its amount."""
    if AMOUNT.fullmatch(text):
        return any(Decimal(number) == Decimal(text) for number in NUMBER.findall(place))
    return text in place and re.search(BEFORE + re.escape(text) + AFTER, place) is not None


def _normalize_source_text(text: str) -> str:
    """Normalize a text: compatibility forms, case and white space."""
    return " ".join(normalize("NFKC", text).casefold().split())
