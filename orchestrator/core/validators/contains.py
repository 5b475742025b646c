"""The answer contains a text, whatever its case."""

from collections.abc import Mapping

from orchestrator.core.step import View
from orchestrator.core.value import Small

NAME = "contains"
PARAMETERS = ("text",)


def holds(view: View, text: str, parameters: Mapping[str, Small]) -> bool:
    """Whether `text` stands in the answer."""
    return str(parameters.get("text", "")).casefold() in text.casefold()
