"""The answer names the contradictions between committed facts (R-LOOP-33).

Facts of `tool` with the same value of `about` and different values of `value` contradict each other. For
each such subject the list at `at` has an entry whose `field` cites a fact of every value.
"""

from collections.abc import Mapping

from orchestrator.core.common.frozen_model import Small
from orchestrator.core.results.run_output import read_output
from orchestrator.core.workflow.goal_inputs import resolve_pointer
from orchestrator.core.workflow.node_protocol import NodeContext

NAME = "conflicts_named"
PARAMETERS = ("tool", "about", "value", "at", "field")
Sides = dict[Small, list[str]]


def holds(view: NodeContext, text: str, parameters: Mapping[str, Small]) -> bool:
    """Return whether the answer names every contradiction."""
    return not faults(view, text, parameters)


def faults(view: NodeContext, text: str, parameters: Mapping[str, Small]) -> list[str]:
    """Return each contradiction that the answer does not name, as a sentence."""
    entries = resolve_pointer(read_output(text), str(parameters.get("at") or ""))
    field = str(parameters.get("field") or "facts")
    cited = [
        entry[field]
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict) and isinstance(entry.get(field), list)
    ]
    return [
        f"the facts contradict each other about {subject}: {_told(sides)}; the answer must name this conflict"
        for subject, sides in _contradictions(view, parameters).items()
        if not any(all(any(name in names for name in side) for side in sides.values()) for names in cited)
    ]


def _contradictions(view: NodeContext, parameters: Mapping[str, Small]) -> dict[str, Sides]:
    """Return each subject with more than one value, and the facts that state each value."""
    found: dict[str, Sides] = {}
    for name, fact in view.state.facts_in_order():
        about = fact.values.get(str(parameters.get("about")))
        value = fact.values.get(str(parameters.get("value")))
        if fact.tool == parameters.get("tool") and isinstance(about, str) and value is not None:
            found.setdefault(about.casefold(), {}).setdefault(value, []).append(name)
    return {subject: sides for subject, sides in found.items() if len(sides) > 1}


def _told(sides: Sides) -> str:
    return ", ".join(f"{value} ({' '.join(names)})" for value, names in sides.items())
