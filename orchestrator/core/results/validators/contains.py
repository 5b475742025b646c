"""The answer contains a text, regardless of case."""

from collections.abc import Mapping

from orchestrator.core.common.frozen_model import Small
from orchestrator.core.workflow.node_protocol import NodeContext

NAME = "contains"
PARAMETERS = ("text",)


def holds(view: NodeContext, text: str, parameters: Mapping[str, Small]) -> bool:
    """Return whether the answer contains the parameter `text`."""
    return str(parameters.get("text", "")).casefold() in text.casefold()
