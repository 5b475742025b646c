"""The typed answer says that an action was done exactly when a verified call did it.

The value at `at` equals `equals` if, and only if, a fact of `tool` was committed. With `by` and `named`, the
fact must be about the subject that the answer has at `named` (R-LOOP-6).
"""

from collections.abc import Mapping

from orchestrator.core.common.frozen_model import Small
from orchestrator.core.results.run_output import read_output
from orchestrator.core.workflow.goal_inputs import resolve_pointer
from orchestrator.core.workflow.node_protocol import NodeContext

NAME = "says_done"
PARAMETERS = ("tool", "at", "equals", "by", "named")


def holds(view: NodeContext, text: str, parameters: Mapping[str, Small]) -> bool:
    """Return whether the answer agrees with the committed facts."""
    return not faults(view, text, parameters)


def faults(view: NodeContext, text: str, parameters: Mapping[str, Small]) -> list[str]:
    """Return the disagreement as a sentence, or an empty list."""
    answer, tool, by = read_output(text), parameters.get("tool"), str(parameters.get("by") or "")
    named = resolve_pointer(answer, str(parameters.get("named") or ""))
    done = any(
        fact.tool == tool and (not by or fact.values.get(by) == named) for fact in view.state.facts.values()
    )
    said = resolve_pointer(answer, str(parameters.get("at"))) == parameters.get("equals")
    if said == done:
        return []
    silent = f"{tool} was done; the answer must say so at {parameters.get('at')}"
    return [f"the answer says that {tool} was done; no fact shows it" if said else silent]
