"""One small patch per rule that stands before a call, or between its answer and what is believed: each takes
exactly one wall down for the length of a block."""

from contextlib import AbstractContextManager
from functools import partial
from typing import Any
from unittest import mock

from mcp import Client
from mcp_types import CreateMessageResult, TextContent

from orchestrator.core.calls import authorization, open_effects
from orchestrator.core.compensation import plan
from orchestrator.core.domain.call_outcomes import Fate
from orchestrator.core.guardrails import policy_evaluation
from orchestrator.core.guardrails.taint_tracking import TaintTracker
from orchestrator.core.nodes.calls import capture_observation, check_tool, verify_observation
from orchestrator.core.policy.provenance.value_matching import SearchableText
from orchestrator.core.tools import schema_drift
from orchestrator.core.tools.remote_definition import ListedTool
from orchestrator.tools.gateways.mcp import mcp_client
from tests.sabotage.core_walls import Felling


def no_rule(name: str) -> Felling:
    """The question whether a call is permitted, without one of its rules."""

    def felled() -> AbstractContextManager[Any]:
        kept = tuple(rule for rule in authorization._RULES if rule[0] != name)
        assert len(kept) < len(authorization._RULES), f"there is no rule {name}: the sabotage misses its wall"
        return mock.patch.object(authorization, "_RULES", kept)

    felled.__name__ = f"no_{name}"
    return felled


def no_scope() -> AbstractContextManager[Any]:
    """The task names whatever is asked for."""
    return mock.patch.object(policy_evaluation, "match_task_scope", return_value="inside")


def no_echoes() -> AbstractContextManager[Any]:
    """What a model wrote into a tool counts as read when it comes back."""
    return mock.patch.object(TaintTracker, "_words", return_value=SearchableText(""))


def no_schema() -> AbstractContextManager[Any]:
    """All arguments fit."""
    return mock.patch.object(authorization, "validate_against_schema", return_value=None)


def no_rate() -> AbstractContextManager[Any]:
    """A tool may be called as often as anybody likes."""
    return mock.patch.object(authorization, "free_at", return_value=None)


def no_conflict() -> AbstractContextManager[Any]:
    """Nobody else holds what a call writes."""
    return mock.patch.object(check_tool, "find_busy_lock_key", return_value=None)


def no_care() -> AbstractContextManager[Any]:
    """Whatever failed may be tried again."""
    return mock.patch.object(capture_observation, "classify_call_failure", return_value=Fate.REPEAT)


def no_open_effects() -> AbstractContextManager[Any]:
    """What an error left open is forgotten."""
    return mock.patch.object(open_effects, "open_of", return_value=None)


def no_reading_back() -> AbstractContextManager[Any]:
    """What is read back agrees with what was answered."""
    return mock.patch.object(verify_observation, "compare_read_back", return_value=("verified", ""))


def no_form() -> AbstractContextManager[Any]:
    """All answers have the form that their tool declares."""
    return mock.patch.object(schema_drift, "validate_against_schema", return_value=None)


def no_expiry() -> AbstractContextManager[Any]:
    """Whoever is turned away was never let in."""
    return mock.patch.object(capture_observation, "_is_credential_expired", return_value=False)


def no_suspicion() -> AbstractContextManager[Any]:
    """Nothing on a run's way back is suspect."""
    return mock.patch.object(plan, "_is_compensation_suspect", return_value=False)


def no_policy_on_the_way_back() -> AbstractContextManager[Any]:
    """The policy forbids no undo."""
    return mock.patch.object(plan, "explain_policy_denial", return_value="")


def no_pinned_definition(admitted: ListedTool) -> AbstractContextManager[Any]:
    """A server's tool is what an admin admitted, whatever the server says of it now."""
    return mock.patch.object(mcp_client, "_listed_now", mock.AsyncMock(return_value=admitted))


def no_refusal() -> AbstractContextManager[Any]:
    """A server that asks for a model's word is given one."""
    said = CreateMessageResult(role="assistant", content=TextContent(text="All that I know."), model="m")
    granting = partial(Client, sampling_callback=mock.AsyncMock(return_value=said))
    return mock.patch.object(mcp_client, "Client", granting)
