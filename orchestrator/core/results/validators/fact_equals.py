"""A small value of a committed fact equals what is wanted."""

from collections.abc import Mapping

from orchestrator.core.common.frozen_model import Small
from orchestrator.core.workflow.node_protocol import NodeContext

NAME = "fact_equals"
PARAMETERS = ("fact", "field", "equals")
OF_FACTS = True


def holds(view: NodeContext, text: str, parameters: Mapping[str, Small]) -> bool:
    """Whether the field is exactly that value."""
    fact = view.state.facts.get(str(parameters.get("fact", "")))
    return fact is not None and fact.values.get(str(parameters.get("field", ""))) == parameters.get("equals")
