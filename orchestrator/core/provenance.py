"""Where each argument value comes from, shown in the packet (R-APPR-2, the ground of R-TOOL-16).

A value stands in the goal, in a fact (trusted or not), in the workflow itself, in a person's edit, or
nowhere else: then it is the model's own.
"""

from typing import Any, Literal, NamedTuple

from orchestrator.core.inputs import inputs
from orchestrator.core.state import Call
from orchestrator.core.step import View
from traces.core.canonical import canonical_outside

Origin = Literal["goal", "plan", "trusted_fact", "untrusted_observation", "person", "model"]
READ = 20_000


class Source(NamedTuple):
    """An origin and what it refers to (a fact id, a node, an approval)."""

    origin: Origin
    reference: str


def trace_arguments(view: View, call: Call, value: dict[str, Any]) -> dict[str, Source]:
    """Each leaf of the arguments, by JSON pointer, with its source."""
    if call.edited:
        return {
            pointer: Source("person", call.grant.by if call.grant else "") for pointer, _ in leaves(value, "")
        }
    view.desk.require(fact.digest for fact in view.state.facts.values())
    given = canonical_outside(inputs(view.manifest.goal, view.state, view.desk)).decode()
    wanted = f"{view.manifest.goal.objective}\n{given}".casefold()
    return {pointer: _source(view, call, leaf, wanted) for pointer, leaf in leaves(value, "")}


def leaves(value: Any, pointer: str) -> list[tuple[str, Any]]:
    """Every leaf of a JSON value with its pointer."""
    if isinstance(value, dict):
        return [found for key in value for found in leaves(value[key], f"{pointer}/{_escaped(key)}")]
    if isinstance(value, list):
        return [found for n, item in enumerate(value) for found in leaves(item, f"{pointer}/{n}")]
    return [(pointer, value)]


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _source(view: View, call: Call, leaf: Any, wanted: str) -> Source:
    text = str(leaf).casefold().strip()
    if text and text in wanted:
        return Source("goal", "")
    for name, fact in view.state.facts_in_order():
        if text and text in view.desk.text(fact.digest, READ).casefold():
            origin: Origin = "trusted_fact" if fact.trust == "trusted" else "untrusted_observation"
            return Source(origin, name)
    drafted = view.state.draft
    if call.by != "model" and not (drafted is not None and text in view.desk.text(drafted, READ).casefold()):
        return Source("plan", call.by)
    return Source("model", "")
