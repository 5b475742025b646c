"""What tools of ours say when they cannot do what is asked: an outcome in plain words."""

from collections.abc import Callable
from typing import TypeVar

from orchestrator.core.common.errors import OrchestratorError
from orchestrator.gateways.tools.service_client import CallFailed
from tenancy.core.errors import NotFound

T = TypeVar("T")


def in_words(do: Callable[[], T]) -> T:
    """What is refused, as the call's outcome. Raises CallFailed."""
    try:
        return do()
    except OrchestratorError as error:
        raise build_tool_refusal(str(error)) from error
    except NotFound:
        raise build_tool_refusal("there is no such state, or its content is not what was handed in") from None


def build_tool_refusal(why: str) -> CallFailed:
    """The refusal of a call; the sentence goes to whoever asked."""
    return CallFailed("refused", sent=True, detail=why.encode("utf-8", "backslashreplace"))
