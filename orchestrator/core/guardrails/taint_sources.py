"""The possible sources of a call's value, and what the call itself declares about them (R-TOOL-16)."""

from typing import Any, NamedTuple

from orchestrator.core.domain.run_state import Call, Fact
from orchestrator.core.policy.provenance.value_matching import SearchableText, may_come_from_text, words_of
from orchestrator.core.policy.rules import Origin, is_at_or_below_pointer
from orchestrator.core.workflow.goal_inputs import MISSING, merge_goal_inputs, resolve_pointer
from orchestrator.core.workflow.node_protocol import NodeContext
from orchestrator.core.workflow.untrusted_inputs import is_untrusted_input
from orchestrator.core.workflow.value_sources import (
    Constant,
    FromDraft,
    FromFact,
    FromInput,
    FromRun,
    ToolCallConfig,
    ValueSource,
)

UNDO = "undo"


class Source(NamedTuple):
    """An origin and what it refers to (a fact id, a pointer into the inputs, a node, a person)."""

    origin: Origin
    reference: str

    @property
    def of_input(self) -> bool:
        """Return whether the source is an input that the workflow declares untrusted."""
        return self.origin == "untrusted_observation" and self.reference.startswith("/")


NOWHERE = Source("model", "")
DRAFT = Source("model", "draft")
_RANK: dict[Origin, int] = {
    "goal": 0, "plan": 0, "person": 0, "trusted_fact": 1, "model": 2, "untrusted_observation": 3,
}  # fmt: skip


def least_trusted_source(*sources: Source) -> Source:
    """Return the least trusted of the sources; the first of equals."""
    return max(sources, key=lambda source: _RANK[source.origin])


def declared_for(view: NodeContext, call: Call, config: ToolCallConfig, pointer: str) -> Source:
    """Return the source of one leaf of a fixed call."""
    declared = {f"/{_escape_pointer_token(name)}": source for name, source in config.arguments.items()}
    source = declared.get("/" + pointer.split("/")[1]) if pointer else None
    return Source("plan", call.by) if source is None else _from_declared(view, call, source)


def _from_declared(view: NodeContext, call: Call, source: ValueSource) -> Source:
    if isinstance(source, FromInput):
        given = resolve_pointer(merge_goal_inputs(view.manifest.goal, view.state, view.desk), source.pointer)
        if given is MISSING and source.otherwise is not None:
            return _from_declared(view, call, source.otherwise)
        untrusted = is_untrusted_input(view, source.pointer)
        return Source("untrusted_observation" if untrusted else "goal", source.pointer)
    if isinstance(source, FromFact):
        fact = view.state.facts.get(source.fact)
        return NOWHERE if fact is None else of_fact(source.fact, fact)
    if isinstance(source, FromDraft):
        return DRAFT
    assert isinstance(source, Constant | FromRun)
    return Source("plan", call.by)


def of_fact(name: str, fact: Fact) -> Source:
    """Return the source that a fact gives to its values."""
    return Source("trusted_fact" if fact.trust == "trusted" else "untrusted_observation", name)


def undo_source(view: NodeContext, call: Call, pointer: str, text: str) -> Source | None:
    """Return the source of an undo's argument, by the compensation that its tool declares.

    The source is the declaration, or the result of the action, which is as trusted as its tool. Returns
    None for a value that the action itself was given, even if its result echoes it: that value is looked
    up.
    """
    unwinding = view.state.unwinding
    if unwinding is None or call.by != UNDO:
        return None
    deed = view.state.deeds[unwinding.call]
    done = view.pins.by_name[deed.tool]
    name = pointer[1:].partition("/")[0].replace("~1", "/").replace("~0", "~")
    taken = None if done.compensation is None else done.compensation.arguments.get(name)
    if taken is None:
        return Source("plan", UNDO)
    if is_at_or_below_pointer(taken, "/arguments"):
        return None
    if done.trust == "untrusted":
        return Source("untrusted_observation", deed.tool)
    echoed = may_come_from_text(text, SearchableText(words_of(view.desk.json(deed.arguments))))
    return None if echoed else Source("trusted_fact", deed.tool)


def flatten_json_leaves(value: Any, pointer: str) -> list[tuple[str, Any]]:
    """Return every leaf of a JSON value with its pointer."""
    if isinstance(value, dict):
        return [
            found
            for key in value
            for found in flatten_json_leaves(value[key], f"{pointer}/{_escape_pointer_token(key)}")
        ]
    if isinstance(value, list):
        return [
            found for n, item in enumerate(value) for found in flatten_json_leaves(item, f"{pointer}/{n}")
        ]
    return [(pointer, value)]


def _escape_pointer_token(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
