"""Converts errors of bundled tools to outcomes in plain words."""

from collections.abc import Callable
from typing import TypeVar

from orchestrator.core.common.errors import OrchestratorError
from orchestrator.tools.gateways.egress.service_client import CallFailed
from tenancy.core.errors import NotFound

T = TypeVar("T")


def in_words(do: Callable[[], T]) -> T:
    """Run `do` and return its result; a refusal becomes the call's outcome.

    Raises: CallFailed.
    """
    try:
        return do()
    except OrchestratorError as error:
        raise build_tool_refusal(str(error)) from error
    except NotFound:
        raise build_tool_refusal("there is no such state, or its content is not what was handed in") from None


def build_tool_refusal(why: str) -> CallFailed:
    """Build the refusal of a call; the sentence is shown to the caller."""
    return CallFailed("refused", sent=True, detail=why.encode("utf-8", "backslashreplace"))
