"""The answer cites committed facts by their ids: in square brackets anywhere, or per entry of a list.

With `at`, a pointer to a list in a typed answer, every entry names its facts in `field`: at least `at_least`
of them, all committed, and together they hold every figure that the entry states (R-LOOP-30).
"""

from collections.abc import Mapping
from typing import Any

import orjson

from orchestrator.core.common.frozen_model import Small
from orchestrator.core.guardrails.grounding import CITATION, loose_figures
from orchestrator.core.results.run_output import read_output
from orchestrator.core.workflow.goal_inputs import resolve_pointer
from orchestrator.core.workflow.node_protocol import NodeContext

NAME = "cites"
PARAMETERS = ("at_least", "at", "field")


def holds(view: NodeContext, text: str, parameters: Mapping[str, Small]) -> bool:
    """Return whether the answer cites enough committed facts."""
    return not faults(view, text, parameters)


def faults(view: NodeContext, text: str, parameters: Mapping[str, Small]) -> list[str]:
    """Return each missing citation as a sentence."""
    wanted = int(parameters.get("at_least") or 1)
    if "at" in parameters:
        return _entries(view, text, str(parameters["at"]), str(parameters.get("field") or "facts"), wanted)
    cited = dict.fromkeys(name for name in CITATION.findall(text) if name in view.state.facts)
    return [] if len(cited) >= wanted else [f"{len(cited)} committed facts are cited, {wanted} are wanted"]


def _entries(view: NodeContext, text: str, at: str, field: str, wanted: int) -> list[str]:
    entries = resolve_pointer(read_output(text), at)
    if not isinstance(entries, list):
        return [f"the answer has no list at {at}"]
    found = [_entry(view, entry, field, wanted) for entry in entries]
    return [f"{at}/{number}: {fault}" for number, fault in enumerate(found) if fault]


def _entry(view: NodeContext, entry: Any, field: str, wanted: int) -> str:
    """Return the fault of one entry, or ""."""
    named = entry.get(field) if isinstance(entry, dict) else None
    cited = dict.fromkeys(name for name in named if isinstance(name, str)) if isinstance(named, list) else {}
    unknown = [name for name in cited if name not in view.state.facts]
    if unknown:
        return f"{unknown[0]} is no committed fact"
    if len(cited) < wanted:
        return f"{len(cited)} facts are cited, {wanted} are wanted"
    said = orjson.dumps({name: value for name, value in entry.items() if name != field}).decode()
    loose = loose_figures(view, said, (view.state.facts[name] for name in cited))
    return f"the figure {loose[0]} stands in none of the facts it cites" if loose else ""
