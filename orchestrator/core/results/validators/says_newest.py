"""A value of the typed answer is what the newest fact of a tool says, for the thing the answer is about.

The value at `at` equals `field` of the newest fact of `tool` among those whose value of `by` is what the
answer has at `named`. Where a fact of the tool `after` about the same thing was committed, the newest one
must have been read later: what was changed is looked at again before it is described (R-TOOL-12).
"""

from collections.abc import Mapping

from orchestrator.core.common.frozen_model import Small
from orchestrator.core.domain.run_state import Fact
from orchestrator.core.results.run_output import read_output
from orchestrator.core.workflow.goal_inputs import MISSING, resolve_pointer
from orchestrator.core.workflow.node_protocol import NodeContext

NAME = "says_newest"
PARAMETERS = ("tool", "field", "at", "by", "named", "after")


def holds(view: NodeContext, text: str, parameters: Mapping[str, Small]) -> bool:
    """Whether the answer says what was read last."""
    return not faults(view, text, parameters)


def faults(view: NodeContext, text: str, parameters: Mapping[str, Small]) -> list[str]:
    """What the answer says otherwise, or what was not read."""
    answer, at, field = read_output(text), str(parameters.get("at")), str(parameters.get("field"))
    named = resolve_pointer(answer, str(parameters.get("named") or ""))
    seen = _facts(view, parameters, "tool", named)
    if not seen:
        thing = named if isinstance(named, str) else "what the answer is about"
        return [f"{parameters.get('tool')} was never read for {thing[:100]}"]
    changed = _facts(view, parameters, "after", named)
    if changed and seen[-1].record <= changed[-1].record:
        return [f"{parameters.get('tool')} must be read again after {parameters.get('after')}"]
    said, read = resolve_pointer(answer, at), seen[-1].values.get(field)
    same = said is not MISSING and type(said) is type(read) and said == read
    return [] if same else [f"{at} is not {read!r}, which is what {parameters.get('tool')} says"]


def _facts(view: NodeContext, parameters: Mapping[str, Small], which: str, named: object) -> list[Fact]:
    """The tool's facts about the thing, oldest first."""
    by = str(parameters.get("by") or "")
    facts = (fact for _, fact in view.state.facts_in_order() if fact.tool == parameters.get(which))
    return [fact for fact in facts if not by or fact.values.get(by) == named]
