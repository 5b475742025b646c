"""The answer cites at least so many committed facts by their ids in square brackets."""

from collections.abc import Mapping

from orchestrator.core.grounding import CITATION
from orchestrator.core.step import View
from orchestrator.core.value import Small

NAME = "cites"
PARAMETERS = ("at_least",)


def holds(view: View, text: str, parameters: Mapping[str, Small]) -> bool:
    """Whether enough of the citations name committed facts."""
    cited = dict.fromkeys(name for name in CITATION.findall(text) if name in view.state.facts)
    return len(cited) >= int(parameters.get("at_least") or 1)
