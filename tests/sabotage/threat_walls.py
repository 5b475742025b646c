"""One small patch per wall against a threat of the list, beyond those of the other rooms: each takes exactly
one down for the length of a block."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any
from unittest import mock

import psycopg
from django.utils.safestring import SafeString
from mcp import Client
from mcp_types import ElicitResult

from budgets.core import pricing
from config.templatetags import ui
from orchestrator.core.calls import authorization
from orchestrator.core.common import argument_parsing, backoff
from orchestrator.core.domain import memory_gate
from orchestrator.core.domain.boundary import Boundary
from orchestrator.core.domain.manifest import Pins
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.domain.tool_spec import Risk, ToolSpec
from orchestrator.core.engine import late_events
from orchestrator.core.llm import failover, model_call, prompt_builder
from orchestrator.core.tools import guard_relaxation, http_tool, registration, remote_definition
from orchestrator.core.workflow.node_protocol import NodeContext
from orchestrator.llm.gateways import catalog, credentials, response
from orchestrator.llm.gateways.providers import response_sanitizing, transport
from orchestrator.outbound.gateways import async_executor
from orchestrator.tools.actions import tool_servers
from orchestrator.tools.gateways.egress.service_client import CallFailed
from orchestrator.tools.gateways.mcp import mcp_client, mcp_stdio
from tenancy.db.integrity_guards import APP
from tenancy.people import relations
from tests.sabotage.patches import _Anything

Felled = AbstractContextManager[Any]
WORD = b"""{"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [
    {"index": 0, "message": {"role": "assistant", "content": "Fine."}, "finish_reason": "stop"}]}"""


def set_to(module: Any, name: str, value: Any) -> Callable[[], Felled]:
    """A bound that is another one, or a check that says something else."""
    return partial(mock.patch.object, module, name, value)


def in_replies(name: str, value: Any) -> Callable[[], Felled]:
    """The same for what bounds a reply: where it is read in its own dialect, and again in ours."""

    @contextmanager
    def felled() -> Iterator[None]:
        with mock.patch.object(response_sanitizing, name, value), mock.patch.object(response, name, value):
            yield

    return felled


def says(module: Any, name: str, answer: Any) -> Callable[[], Felled]:
    """A check that always says the same."""
    return partial(mock.patch.object, module, name, return_value=answer)


@contextmanager
def no_immutability(superuser: psycopg.Connection) -> Iterator[None]:
    """The application may rewrite a published version of a tool."""
    superuser.execute(f"GRANT UPDATE ON orchestrator_toolversion TO {APP}")
    superuser.execute("ALTER TABLE orchestrator_toolversion DISABLE TRIGGER append_only")
    try:
        yield
    finally:
        superuser.execute("ALTER TABLE orchestrator_toolversion ENABLE TRIGGER append_only")
        superuser.execute(f"REVOKE UPDATE ON orchestrator_toolversion FROM {APP}")


def no_deadline() -> Felled:
    """Past its deadline work goes on, and whoever waits for it is told nothing."""

    async def within(work: Awaitable[Any], timeout_ms: int) -> None:
        await asyncio.wait({asyncio.ensure_future(work)}, timeout=timeout_ms / 1000)

    return mock.patch.object(async_executor, "_run_with_timeout", within)


def no_script() -> Felled:
    """Without a key a run is pinned to a model that nobody can ask."""
    scripted = catalog.scripted_profiles

    def real(scenario: str) -> tuple[Any, ...]:
        return tuple(one.evolve(provider="openai") for one in scripted(scenario))

    return mock.patch.object(catalog, "scripted_profiles", real)


def no_cap_on_calls() -> Felled:
    """A reply may ask for more calls than it may."""
    return mock.patch.object(
        Boundary, "max_calls_per_reply", new_callable=mock.PropertyMock, return_value=20, create=True
    )


class _Generous(dict[str, Any]):
    """Names that are read as what was probably meant."""

    def get(self, name: str, default: Any = None) -> Any:
        """The tool of this name, whatever its case and the blanks around it."""
        return super().get(name.strip().lower(), default)


@contextmanager
def names_taken_generously() -> Iterator[None]:
    """A name that is no tool's is taken for the nearest one's."""
    exact = property(lambda pins: _Generous({tool.name: tool for tool in pins.tools}))
    with (
        mock.patch.object(Pins, "by_name", exact),
        mock.patch.object(authorization, "is_listed", return_value=True),
    ):
        yield


def no_pinned_tool() -> Felled:
    """Whatever is called is what was admitted, and there."""
    there = mock.Mock(definition=mock.Mock(digest=_Anything("pinned"), output_schema=None))
    return mock.patch.object(mcp_client, "_listed_now", mock.AsyncMock(return_value=there))


def hints_believed() -> Felled:
    """A tool reads only where its server says so."""
    return mock.patch.object(
        guard_relaxation,
        "_is_reading_definition",
        lambda definition: definition.annotations.get("readOnlyHint") is True,
    )


def no_doubt() -> Felled:
    """What was lost on the way was not sent."""
    unsent = CallFailed("unreachable", sent=False, transient=True)
    return mock.patch.object(mcp_client, "_build_failure", return_value=unsent)


def former_protocol_only() -> Felled:
    """Every server is spoken to as one of the former protocol."""
    return mock.patch.object(mcp_client, "Client", partial(Client, mode="legacy"))


def _by_its_class(spec: ToolSpec) -> bool:
    return spec.approval == "always" or (spec.approval == "by_risk" and spec.risk.is_gated)


@contextmanager
def words_among_instructions() -> Iterator[None]:
    """What tools said stands among the instructions."""
    instructions = prompt_builder._build_system_prompt

    def system(view: NodeContext, *more: Any) -> str:
        return instructions(view, *more) + "\n" + prompt_builder._format_facts(view)

    with mock.patch.object(prompt_builder, "_build_system_prompt", system):
        yield


def arguments_as_written() -> Felled:
    """Arguments are kept as the model wrote them, and not in their one form."""

    def parse(raw: bytes) -> argument_parsing.Arguments | argument_parsing.MalformedArguments:
        found = argument_parsing.parse_arguments(raw)
        return found.evolve(body=raw) if isinstance(found, argument_parsing.Arguments) else found

    return mock.patch.object(authorization, "parse_arguments", parse)


def claims_believed() -> Felled:
    """Whoever reads that something was approved, or may be, takes it so."""
    asks = authorization.CallAuthorizer.is_gated

    def is_gated(chain: authorization.CallAuthorizer) -> bool:
        told = [result.content for result in chain.view.state.results]
        told += [fact.digest for fact in chain.view.state.facts.values()]
        return asks(chain) and not any(b"approve" in chain.view.desk.read(one) for one in told)

    return mock.patch.object(authorization.CallAuthorizer, "is_gated", is_gated)


def input_given() -> Felled:
    """A server that asks a person something is answered in their name."""
    word = mock.AsyncMock(return_value=ElicitResult(action="accept", content={"answer": "yes"}))
    return mock.patch.object(mcp_client, "Client", partial(Client, elicitation_callback=word))


def nobody_stands_down() -> Felled:
    """Whoever failed is asked again."""

    def handed(_pins: Pins, state: RunState, *_: Any) -> RunState:
        return state.evolve(counters=state.counters.evolve(model_attempts=0))

    return mock.patch.object(model_call, "handed_to", handed)


def one_key_for_all() -> Felled:
    """The operator's key goes wherever a profile points."""
    return mock.patch.object(
        credentials,
        "key_for",
        lambda environment, _: environment.openai_api_key or environment.anthropic_api_key,
    )


NO_GATE_BY_ITS_END = set_to(ToolSpec, "needs_gate", property(_by_its_class))
NOBODY_RELATED = says(relations, "find_ties_in_force", [])
NO_FILTER = says(prompt_builder, "_within_ceilings", True)
NO_QUOTING = set_to(http_tool, "quote", lambda text, safe="": text)
NO_DEPTH = says(argument_parsing, "_measure_nesting_depth", 0)
NO_CUT_TEXT = in_replies("MAX_TEXT", 8 * 1024 * 1024)
NO_CHECKED_REPLY = says(transport, "_clean_body", WORD)
NO_LONGEST_WAIT = set_to(backoff, "CAP_MS", 10**9)
NO_SENSE = set_to(pricing, "parse_token_count", lambda figure: figure)
NO_DISTINCT_IDS = in_replies("distinct_ids", list)
NO_ESCAPING = set_to(ui, "_mark_text", SafeString)
NO_RESEMBLANCE = says(memory_gate, "may_come_from_text", False)
NO_HIDING = set_to(mcp_client, "without_secret", lambda text, _secret, **_: text)
NO_BOUND_ON_RESULTS = set_to(mcp_client, "KEPT", 10**9)
NO_LATE_WORD = says(late_events, "trace_late_outcome", ())
NO_MARKS = says(remote_definition, "does_not_show", False)
NO_COLLISION = says(tool_servers, "list_colliding_names", ())
NO_ORIGIN = says(tool_servers, "_check_secret", None)
OUR_ENVIRONMENT = set_to(mcp_stdio, "CLEAN", dict(os.environ))
READS_UNLESS_SAID = set_to(registration, "_resolve_risk", lambda admission: admission.risk or Risk.READ_ONLY)
NO_OWN_FAULT = set_to(failover, "OURS", frozenset())
NO_PRICE_OF_THE_HEIR = says(model_call, "_can_take_over", True)
NO_HIDDEN_KEY = set_to(credentials.Access, "secret", property(lambda _: ""))
NO_MOST_TOOLS = set_to(mcp_client, "MOST_TOOLS", 10**6)
