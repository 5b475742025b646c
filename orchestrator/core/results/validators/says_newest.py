"""A value of the typed answer equals the newest fact of a tool about the subject of the answer.

The value at `at` equals `field` of the newest fact of `tool` among those whose value of `by` is the answer's
value at `named`. If a fact of the tool `after` about the same subject was committed, the newest fact must
have been read later: a changed thing is read again before it is described (R-TOOL-12).
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
    """Return whether the answer states the value that was read last."""
    return not faults(view, text, parameters)


def faults(view: NodeContext, text: str, parameters: Mapping[str, Small]) -> list[str]:
    """Return the deviation from the newest fact, or the missing read, as a sentence."""
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
    """Return the tool's facts about the subject, oldest first."""
    by = str(parameters.get("by") or "")
    facts = (fact for _, fact in view.state.facts_in_order() if fact.tool == parameters.get(which))
    return [fact for fact in facts if not by or fact.values.get(by) == named]
