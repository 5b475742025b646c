"""A fact was committed: by its id, or by the tool it comes from."""

from collections.abc import Mapping

from orchestrator.core.common.frozen_model import Small
from orchestrator.core.workflow.node_protocol import NodeContext

NAME = "fact_committed"
PARAMETERS = ("fact", "tool")
OF_FACTS = True


def holds(view: NodeContext, text: str, parameters: Mapping[str, Small]) -> bool:
    """Return whether the state contains such a fact."""
    name, tool = parameters.get("fact"), parameters.get("tool")
    if name is not None:
        return name in view.state.facts
    return any(fact.tool == tool for fact in view.state.facts.values())
