"""Calls a model over HTTP, through pydantic_ai.direct only. Every failure becomes an outcome (R-LOOP-9)."""

import asyncio
from functools import partial
from math import isfinite

import httpx2
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic import ValidationError
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelHTTPError,
    ModelRateLimitError,
    ModelTimeoutError,
)
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.tools.egress_policy import target_of
from orchestrator.llm.gateways.catalog import ANTHROPIC_URL, OPENAI_URL
from orchestrator.llm.gateways.credentials import Access
from orchestrator.llm.gateways.live_text import LiveReply
from orchestrator.llm.gateways.model_request import ModelCall
from orchestrator.llm.gateways.providers.message_mapping import messages_of, parameters_of, reply_of
from orchestrator.llm.gateways.providers.response_sanitizing import Capture, clean_anthropic, clean_openai
from orchestrator.llm.gateways.providers.stream_assembler import ASKED, STREAMS
from orchestrator.llm.gateways.providers.transport import CAPTURE, http_client
from orchestrator.llm.gateways.request import NeutralRequest, WireNames, read_request
from orchestrator.llm.gateways.response import (
    Reply,
    build_failure_outcome,
    build_reply_outcome,
    redact_reply,
    redact_secret,
)
from orchestrator.outbound.gateways.async_executor import Close, EffectLoop
from orchestrator.outbound.gateways.effect_result import EffectResult
from orchestrator.tools.gateways.egress.guarded_transport import resolve_allowed_addresses

# No connection was made, or none was allowed: nothing of the request was sent.
UNSENT = (
    httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError,
    httpx2.UnsupportedProtocol, EgressRefused,
)  # fmt: skip


async def perform_model_call(loop: EffectLoop, access: Access, call: ModelCall) -> EffectResult:
    """Call the model and normalize the reply. Raises nothing but cancellation."""
    utterance = LiveReply(call.audience, access.secret)
    try:
        return await _run_model_call(loop, access, call, utterance)
    finally:
        utterance.close()


async def _run_model_call(
    loop: EffectLoop, access: Access, call: ModelCall, utterance: LiveReply
) -> EffectResult:
    effect, salt = call.effect, call.salt
    if access.key is None:
        return build_failure_outcome(effect, salt, "no_key", transient=False, detail=access.why)
    capture = Capture(
        secret=access.secret,
        clean=clean_anthropic if call.profile.provider == "anthropic" else clean_openai,
        assemble=partial(STREAMS[call.profile.provider], utterance.add) if call.profile.streams else None,
    )
    CAPTURE.set(capture)
    try:
        async with asyncio.timeout(effect.timeout_ms / 1000) as deadline:
            capture.until = deadline.when()
            await _check_destination(access, call.profile)
            reply = await _request_reply(loop, access, call, capture)
    except TimeoutError:
        detail = f"no reply within {effect.timeout_ms} ms"
        return build_failure_outcome(effect, salt, "timeout", transient=True, detail=detail)
    except Exception as error:  # noqa: BLE001 - whatever a library does with a reply must not steer a run
        return _build_failure(call, access, capture, error)
    if capture.fault is not None:
        return _build_failure(call, access, capture, None)
    return build_reply_outcome(effect, call.request, reply, salt, call.vault)


async def _check_destination(access: Access, profile: ModelProfile) -> None:
    """Check that a tenant's address may be connected to.

    The transport checks the address again when it connects, but reports a refusal like a dead server.

    Raises: EgressRefused.
    """
    if access.leave is not None:
        await resolve_allowed_addresses(target_of(str(profile.base_url)), access.leave)


def _build_failure(
    call: ModelCall, access: Access, capture: Capture, error: Exception | None
) -> EffectResult:
    """Return the failure outcome of a call, with one of our closed error codes.

    The key is removed from the detail.
    """
    after = None
    if isinstance(error, EgressRefused):
        unresolved = bool(error.data.get("unresolved"))
        word, transient = ("unreachable", True) if unresolved else ("egress_refused", False)
        detail = str(error.data["detail"])
    elif isinstance(error, InvalidRequest):
        word, transient, detail = "rejected", False, f"not a request: {error}"
    elif isinstance(error, ModelAPIError) and (capture.fault is None or (capture.status or 0) >= 400):
        word, transient = _classify_error(error, capture.status)
        wish, detail = error.retry_after, str(error)
        after = int(min(wish, 86_400.0) * 1000) if wish is not None and isfinite(wish) else None
    else:
        # The body is not a valid reply. Another attempt is worthwhile where the connection was to blame
        # (M9).
        word, transient = "cut_off" if capture.cut else "malformed", capture.fault is not None
        detail = capture.fault or f"{type(error).__name__}: {error}"
    detail = redact_secret(detail, access.secret, cut=True)
    return build_failure_outcome(
        call.effect, call.salt, word, transient=transient, detail=detail, retry_after_ms=after
    )


class InvalidRequest(Exception):
    """The neutral request cannot be read: nobody's fault but ours. Caught here, seen by nobody else."""


def _parse_request(request: bytes) -> NeutralRequest:
    try:
        return read_request(request)
    except ValidationError as error:
        raise InvalidRequest(str(error)) from None


async def _request_reply(loop: EffectLoop, access: Access, call: ModelCall, capture: Capture) -> Reply:
    effect, profile, asked = call.effect, call.profile, _parse_request(call.request)
    names = WireNames(tool.name for tool in asked.tools)
    # The gateway's own output limit: the request never asks for more than was reserved.
    limit = min(effect.max_output_tokens, profile.max_output_tokens)
    settings = ModelSettings(max_tokens=limit, timeout=effect.timeout_ms / 1000)
    if profile.streams:
        # The library asks for a whole reply and gets one: the transport assembles the stream.
        settings["extra_body"] = ASKED[profile.provider]
    response = await model_request(
        _build_model(loop, access, profile),
        messages_of(asked, names, strict_ids=profile.provider == "anthropic"),
        model_settings=settings,
        model_request_parameters=parameters_of(asked, names),
        instrument=False,
    )
    return redact_reply(reply_of(response, capture, names), access.secret)


def _build_model(loop: EffectLoop, access: Access, profile: ModelProfile) -> Model:
    """Return the library's model, on an HTTP client that the loop caches.

    The cache key is the provider, address, key and egress permission.
    """
    kept = (str(access.key), access.own, access.leave)
    if profile.provider == "anthropic":
        url = profile.base_url or ANTHROPIC_URL
        anthropic = loop.client(("anthropic", url, *kept), lambda: _build_anthropic_client(url, access))
        return AnthropicModel(profile.model, provider=AnthropicProvider(anthropic_client=anthropic))
    url = profile.base_url or OPENAI_URL
    openai = loop.client(("openai", url, *kept), lambda: _build_openai_client(url, access))
    # Compatible servers know the older name of the output limit; only OpenAI itself requires the newer one.
    official = url.rstrip("/") == OPENAI_URL
    known = OpenAIModelProfile(
        openai_chat_supports_max_completion_tokens=official, openai_supports_strict_tool_definition=False
    )
    return OpenAIChatModel(profile.model, provider=OpenAIProvider(openai_client=openai), profile=known)


def _build_openai_client(url: str, access: Access) -> tuple[AsyncOpenAI, Close]:
    key = str(access.key)
    under = http_client(url, access.leave, bare={"authorization": f"Bearer {key}"} if access.own else None)
    # A retry inside the library would be a call that is neither reserved nor recorded.
    client = AsyncOpenAI(base_url=url, api_key=key, max_retries=0, http_client=under)
    return client, client.close


def _build_anthropic_client(url: str, access: Access) -> tuple[AsyncAnthropic, Close]:
    key = str(access.key)
    under = http_client(url, access.leave, bare={"x-api-key": key} if access.own else None)
    client = AsyncAnthropic(base_url=url, api_key=key, max_retries=0, http_client=under)
    return client, client.close


def _classify_error(error: ModelAPIError, status: int | None) -> tuple[str, bool]:
    if isinstance(error, ModelTimeoutError):
        return ("unreachable", True) if _is_unsent_error(error) else ("timeout", True)
    if isinstance(error, ModelConnectionError):
        # A request that was sent and got no complete reply may be charged, even without a status.
        return ("unreachable", True) if _is_unsent_error(error) else ("cut_off", True)
    if isinstance(error, ModelRateLimitError) or status in (402, 429):
        return "rate_limited", isinstance(error, ModelRateLimitError)
    if isinstance(error, ModelAuthenticationError) or status in (401, 403):
        return "unauthorized", False
    return _word_of(error.status_code if isinstance(error, ModelHTTPError) else status)


def _word_of(status: int | None) -> tuple[str, bool]:
    if status in (404, 410):
        return "no_such_model", False
    if status in (503, 529):
        # The server reports that it is temporarily unavailable, for example while it loads its model.
        return "unavailable", True
    if status is not None and (status >= 500 or status in (408, 409, 425)):
        return "server_error", True
    return "rejected", False


def _is_unsent_error(error: BaseException) -> bool:
    """Return whether the call failed before anything could be sent."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, UNSENT):
            return True
        cause = cause.__cause__
    return False
