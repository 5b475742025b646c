"""Remote tools as the gateway calls them: a tool of a server, or one HTTP request (R-TOOL-20, 21).

Addresses and secrets are read for each call, so that an admin's removal takes effect at the next call.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx2
import orjson
from pydantic import BaseModel, ConfigDict

from orchestrator.core.common.errors import DefinitionRefused
from orchestrator.core.domain.tool_spec import HttpRequest, RemoteLookup, ToolSpec
from orchestrator.core.tools.egress_policy import EgressPolicy
from orchestrator.core.tools.http_tool import PreparedRequest, prepare_request
from orchestrator.core.tools.remote_definition import Drift
from orchestrator.core.workflow.goal_inputs import MISSING, resolve_pointer
from orchestrator.tools.gateways.egress.guarded_transport import Resolver, guarded_client, system_resolver
from orchestrator.tools.gateways.egress.service_client import (
    CONNECT_SECONDS,
    CallFailed,
    SendWatch,
    ServiceResponse,
    ToolContext,
    send_bounded_request,
)
from orchestrator.tools.gateways.mcp import mcp_client
from orchestrator.tools.gateways.registry import Tool
from orchestrator.tools.gateways.secret_redaction import without_secret

Changed = Callable[[Drift], None]
Renew = Callable[[], Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSecret:
    """The secret of one request: its value, whether it expires too soon, and a function that renews it."""

    value: str = ""
    expired: bool = False
    renew: Renew | None = None


NO_SECRET = RequestSecret()


class CheckedArguments(BaseModel):
    """Arguments that were checked against the pinned schema, and are sent as the bytes that were approved."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class RemoteTool(Tool[Any, Any]):
    """A remote tool with the interface of a declared tool."""

    def __init__(
        self,
        spec: ToolSpec,
        function: Callable[[ToolContext], Awaitable[ServiceResponse[Any]]],
        look_up: Callable[[ToolContext, Any], Awaitable[ServiceResponse[Any] | None]] | None,
    ) -> None:
        self.function = function
        self.waits, self.takes_context, self.service = True, True, None
        self.arguments = CheckedArguments
        self.look_up = look_up
        self.spec = spec


def server_tool(spec: ToolSpec, place: mcp_client.ServerAddress, changed: Changed) -> RemoteTool:
    """Build a tool of a server.

    `changed` is called in a worker thread when the tool is not what was admitted.
    """
    remote = spec.remote
    assert remote is not None

    async def function(context: ToolContext) -> ServiceResponse[Any]:
        try:
            return await mcp_client.call_server_tool(
                place,
                remote.tool,
                _parse_call_arguments(context),
                admitted=remote.definition,
                key=context.key,
                watch=context.watch,
                mutating=spec.is_mutating,
            )
        except mcp_client.ToolChanged as found:
            await asyncio.to_thread(changed, found.drift)
            detail = f"{spec.name} is not what was admitted any more; it is quarantined and was not called"
            raise CallFailed("refused", sent=False, detail=detail.encode()) from None

    async def look_up(context: ToolContext, _values: Any) -> ServiceResponse[Any] | None:
        lookup = remote.lookup
        assert lookup is not None
        answer = await mcp_client.call_server_tool(
            place,
            lookup.tool,
            _build_lookup_arguments(lookup, context),
            admitted=lookup.definition,
            key=context.key,
            watch=SendWatch(),
            mutating=False,
        )
        return _extract_lookup_result(lookup, answer)

    return RemoteTool(spec, function, look_up if remote.lookup is not None else None)


def request_tool(
    spec: ToolSpec, leave: EgressPolicy, secret: RequestSecret, *, resolver: Resolver = system_resolver
) -> RemoteTool:
    """Build a tool that is one HTTP request."""
    remote = spec.remote
    assert remote is not None
    assert remote.request is not None
    request = remote.request

    async def function(context: ToolContext) -> ServiceResponse[Any]:
        try:
            prepared = prepare_request(request, _parse_call_arguments(context), context.key)
        except DefinitionRefused as refused:
            detail = str(refused.data["detail"]).encode("utf-8", "backslashreplace")
            raise CallFailed("refused", sent=False, detail=detail) from None
        return await _send_with_renewal(prepared, request, context, leave, secret, resolver)

    async def look_up(context: ToolContext, _values: Any) -> ServiceResponse[Any] | None:
        assert remote.lookup is not None
        asked = _build_lookup_arguments(remote.lookup, context)
        reading = request.evolve(
            method="GET", url=remote.origin + remote.lookup.path, body="none",
            query={name: name for name in asked if f"{{{name}}}" not in remote.lookup.path},
        )  # fmt: skip
        prepared = prepare_request(reading, asked, context.key)
        return _extract_lookup_result(
            remote.lookup, await _send_with_renewal(prepared, reading, context, leave, secret, resolver)
        )

    return RemoteTool(spec, function, look_up if remote.lookup is not None else None)


async def _send_with_renewal(
    prepared: PreparedRequest,
    request: HttpRequest,
    context: ToolContext,
    leave: EgressPolicy,
    secret: RequestSecret,
    resolver: Resolver,
) -> ServiceResponse[Any]:
    """Send a request under a secret that has not expired, and renew a secret that is rejected.

    A request that is safe to repeat (a read, or a change under its idempotency key) is then sent once more
    (R-TOOL-13). Any other change is not repeated, because it may have been made before the secret was
    rejected (R-TOOL-10).
    """
    if secret.expired and secret.renew is None:
        raise CallFailed("credential_expired", sent=False, detail=b"its secret lasts no longer")
    value = await secret.renew() if secret.expired and secret.renew is not None else secret.value
    try:
        return await _send_request(prepared, request, context, leave, value, resolver)
    except CallFailed as failure:
        if failure.error != "unauthorized" or secret.renew is None or value != secret.value:
            raise
        if not _is_safe_to_repeat(context):
            # Whether or not the renewal succeeds, this call stays open; the next call has the new secret.
            with suppress(CallFailed):
                await secret.renew()
            raise
    return await _send_request(prepared, request, context, leave, await secret.renew(), resolver)


def _is_safe_to_repeat(context: ToolContext) -> bool:
    """Return whether sending twice has the same effect as sending once."""
    return not context.mutating or (context.spec is not None and context.spec.honours_keys)


async def _send_request(
    prepared: PreparedRequest,
    request: HttpRequest,
    context: ToolContext,
    leave: EgressPolicy,
    secret: str,
    resolver: Resolver,
) -> ServiceResponse[Any]:
    headers = dict(prepared.headers)
    if secret:
        headers[request.secret_header] = request.secret_form.replace("{secret}", secret)
    timeout = httpx2.Timeout(context.seconds, connect=min(CONNECT_SECONDS, context.seconds))
    async with guarded_client(leave, resolver=resolver, timeout=timeout, max_redirects=3) as client:
        sending = client.build_request(
            prepared.method, prepared.url, content=prepared.body, headers=headers,
            extensions={"trace": context.watch},
        )  # fmt: skip
        try:
            answer = await send_bounded_request(
                client, sending, context.watch, follow=prepared.method == "GET",
                clean=lambda said: without_secret(said, secret),
            )  # fmt: skip
        except CallFailed as failure:
            failure.clean(lambda said: without_secret(said, secret, cut=True))
            raise
    body = without_secret(answer.body, secret, cut=answer.truncated) or b"null"
    return ServiceResponse(
        body=body, status=answer.status, request_id=answer.request_id, size=answer.size, whole=answer.whole,
        truncated=answer.truncated,
    )  # fmt: skip


def _parse_call_arguments(context: ToolContext) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(context.arguments or b"{}")
    return found


def _build_lookup_arguments(lookup: RemoteLookup, context: ToolContext) -> Mapping[str, Any]:
    """Build the arguments of a look-up from the call's key and arguments."""
    document = {"key": context.key, "arguments": _parse_call_arguments(context)}
    found = {name: resolve_pointer(document, pointer) for name, pointer in lookup.arguments.items()}
    return {name: value for name, value in found.items() if value is not MISSING}


def _extract_lookup_result(lookup: RemoteLookup, answer: ServiceResponse[Any]) -> ServiceResponse[Any] | None:
    """Return the entry of the effect in the look-up's answer; None where the answer has no such entry.

    Raises: CallFailed for an answer that was cut or lacks the place of the entry, because it does not say
    whether the effect exists.
    """
    if answer.truncated:
        raise CallFailed("malformed", sent=True)
    document = answer.json()
    found = resolve_pointer(document, lookup.found)
    if isinstance(found, list) and found:
        # An entry without content still exists, and cannot be identified.
        found = found[-1] or MISSING
    if found is MISSING and not _is_short_list(document, lookup.found):
        raise CallFailed("malformed", sent=True)
    if found is MISSING or not found:
        return None
    body = orjson.dumps(found)
    return ServiceResponse(body=body, size=len(body))


def _is_short_list(document: Any, pointer: str) -> bool:
    """True if the pointer names an entry of an empty list, as in a search without results."""
    parent, _, entry = pointer.rpartition("/")
    return entry.isdigit() and resolve_pointer(document, parent) == []
