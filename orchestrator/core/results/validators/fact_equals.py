"""A small value of a committed fact equals the wanted value."""

from collections.abc import Mapping

from orchestrator.core.common.frozen_model import Small
from orchestrator.core.workflow.node_protocol import NodeContext

NAME = "fact_equals"
PARAMETERS = ("fact", "field", "equals")
OF_FACTS = True


def holds(view: NodeContext, text: str, parameters: Mapping[str, Small]) -> bool:
    """Return whether the field is exactly the wanted value."""
    fact = view.state.facts.get(str(parameters.get("fact", "")))
    return fact is not None and fact.values.get(str(parameters.get("field", ""))) == parameters.get("equals")
