"""The HTTP layer under the provider libraries: bounded bodies, cleaned replies, no redirects (M8, M9)."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2
import orjson

from orchestrator.core.tools.egress_policy import EgressPolicy
from orchestrator.llm.gateways.providers.response_sanitizing import (
    Assembly,
    BrokenReply,
    Capture,
    document_of,
)
from orchestrator.tools.gateways.egress.guarded_transport import GuardedTransport, Resolver, system_resolver
from orchestrator.tools.gateways.secret_redaction import without_secret

# A reply of 2 MB is cut to size and used; one beyond this limit is not even read.
MAX_BODY = 4 * 1024 * 1024
MAX_ERROR_BODY = 64 * 1024
CAPTURE: ContextVar[Capture] = ContextVar("interlock_model_exchange")
NEEDED = frozenset(
    {"host", "content-type", "content-length", "transfer-encoding", "accept", "accept-encoding", "connection",
     "user-agent", "anthropic-version"}
)  # fmt: skip
KEPT_HEADERS = ("retry-after", "retry-after-ms", "request-id", "x-request-id")
CONNECT_SECONDS = 5.0
# The time to wait for the end of a stream after its last event, so that its connection can be reused.
REST_SECONDS = 0.2


class CleaningTransport(httpx2.AsyncBaseTransport):
    """Reads each reply whole within its bound and returns a conformant document, or records its fault.

    With `bare` only the headers that a call needs are sent, plus those in `bare`: the libraries add headers
    that the operator's environment sets for the operator's own providers (P9).
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, *, bare: Mapping[str, str] | None = None) -> None:
        self._inner, self._bare = inner, bare

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Perform one exchange; the capture of the current task records what was observed."""
        capture = CAPTURE.get()
        capture.fault, capture.cut, capture.unkept = None, False, 0
        if self._bare is not None:
            needed = {name: value for name, value in request.headers.items() if name in NEEDED}
            request.headers = httpx2.Headers(needed | dict(self._bare))
        response = await self._inner.handle_async_request(request)
        capture.status = response.status_code
        try:
            if capture.assemble is not None and _is_stream(response):
                body = await self._follow(response, capture, capture.assemble())
            else:
                body = await self._read(response, capture)
        finally:
            await response.aclose()
        body = without_secret(body, capture.secret)
        if response.is_success:
            body = _clean_body(body, capture)
        kept = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
        headers = {**kept, "content-type": "application/json"}
        return httpx2.Response(response.status_code, headers=headers, content=body, request=request)

    async def _read(self, response: httpx2.Response, capture: Capture) -> bytes:
        limit = MAX_BODY if response.is_success else MAX_ERROR_BODY
        body = bytearray()
        try:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > limit:
                    capture.fault = f"the reply is larger than {limit} bytes"
                    break
        except httpx2.TimeoutException:
            raise
        except httpx2.HTTPError as error:
            capture.fault, capture.cut = f"the reply broke off: {type(error).__name__}", True
        return bytes(body[:limit])

    async def _follow(self, response: httpx2.Response, capture: Capture, reply: Assembly) -> bytes:
        """Return the whole reply that a stream amounts to; empty with a fault recorded."""
        chunks = response.aiter_bytes()
        try:
            async for chunk in chunks:
                reply.feed(chunk)
                if reply.over:
                    break
            body = reply.body()
        except httpx2.TimeoutException:
            raise
        except httpx2.HTTPError as error:
            capture.fault, capture.cut = f"the reply broke off: {type(error).__name__}", True
        except BrokenReply as error:
            capture.fault = str(error)[:300]
        else:
            capture.unkept = reply.unkept
            if _has_time(capture):
                with suppress(TimeoutError, httpx2.HTTPError):
                    async with asyncio.timeout(REST_SECONDS):
                        async for _ in chunks:
                            pass
            return body
        return b""

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def _has_time(capture: Capture) -> bool:
    """Return whether there is time to wait for a stream's end.

    A complete reply must not be delayed for the sake of a reusable connection.
    """
    return capture.until is None or capture.until - asyncio.get_running_loop().time() > 2 * REST_SECONDS


def _is_stream(response: httpx2.Response) -> bool:
    """Return whether the server streams.

    A server may also answer a stream request with a whole reply or an error.
    """
    kind: str = response.headers.get("content-type", "")
    return response.is_success and kind.partition(";")[0].strip().lower() == "text/event-stream"


def _clean_body(body: bytes, capture: Capture) -> bytes:
    """Return a document that the library can parse; with a fault recorded, an empty one.

    The gateway checks the fault first.
    """
    if capture.fault is not None:
        return b"{}"
    try:
        return orjson.dumps(capture.clean(document_of(body), capture))
    except (BrokenReply, orjson.JSONEncodeError) as error:
        capture.fault = str(error)[:300]
        return b"{}"


def http_client(
    base_url: str,
    leave: EgressPolicy | None = None,
    *,
    bare: Mapping[str, str] | None = None,
    connections: int = 64,
    resolver: Resolver = system_resolver,
) -> httpx2.AsyncClient:
    """Build a client for one provider.

    A proxy of the environment is used, except for loopback hosts. With `leave` each connection is checked
    against that permission instead, and no proxy is used (W3). `bare`: see CleaningTransport.
    """
    if leave is not None:
        return _build_client(GuardedTransport(leave, most_bytes=MAX_BODY + 1, resolver=resolver), bare)
    parts = urlsplit(base_url)
    proxy = (
        None
        if proxy_bypass(parts.hostname or "") or _is_loopback_host(parts.hostname)
        else getproxies().get(parts.scheme)
    )
    limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=16, keepalive_expiry=30)
    return _build_client(httpx2.AsyncHTTPTransport(trust_env=False, limits=limits, proxy=proxy), bare)


def _build_client(inner: httpx2.AsyncBaseTransport, bare: Mapping[str, str] | None) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=CleaningTransport(inner, bare=bare), follow_redirects=False, trust_env=False,
        headers={"accept-encoding": "identity"}, timeout=httpx2.Timeout(60, connect=CONNECT_SECONDS),
    )  # fmt: skip


def _is_loopback_host(host: str | None) -> bool:
    return host in ("localhost", "127.0.0.1", "::1")
