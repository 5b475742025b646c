"""Bounded access of a tool to its one service, without redirects, to no other origin.

Spec: R-TOOL-11, R-BUDGET-17, G7.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import isfinite
from typing import Any, Generic, NoReturn, TypeVar
from urllib.parse import quote, urlsplit
from uuid import UUID

import httpx2
import orjson

from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.domain.call_outcomes import Answer as Reply
from orchestrator.core.domain.call_outcomes import answer_of
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.outbound.gateways.async_executor import Close, EffectLoop
from orchestrator.tools.gateways.egress.guarded_transport import TooMuch, guarded_client, operators_leave
from orchestrator.tools.gateways.ports.workspace_port import Files
from tenancy.core.json_reading import read_json

T = TypeVar("T")
Environment = Callable[[str], str | None]
KEPT = 256 * 1024
READ = 16 * 1024 * 1024
CONNECT_SECONDS = 5.0
MAX_RETRY_AFTER_MS = 30_000
WORDS = {"refused": Reply.REFUSED, "unauthorized": Reply.REFUSED, "malformed": Reply.UNREADABLE}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceResponse(Generic[T]):
    """A service's answer as it came; T is the type that its JSON must fit.

    `whole` is the SHA-256 of all that was read. `size` is in bytes; above 256 KiB the body is cut and
    `truncated` is set.
    """

    body: bytes
    status: int = 200
    request_id: str = ""
    size: int = 0
    whole: str = ""
    truncated: bool = False

    def json(self) -> Any:
        """Parse the body's JSON, in which no member may be repeated.

        Raises: JSONDecodeError.
        """
        return read_json(self.body)

    def contradicts(self, why: str) -> NoReturn:
        """Reject an answer that does not match the request; the answer is kept as a failure.

        Raises: CallFailed.
        """
        detail = self.body + f"\n{why}".encode()
        raise CallFailed("malformed", sent=True, detail=detail, unread=self)

    def newest(self, listing: str, **equal: str) -> "ServiceResponse[Any] | None":
        """Return the last entry of a listing (oldest first) with these values, as an answer of its own.

        None where no entry matches.

        Raises: CallFailed where it is not a list.
        """
        listed = self.json()[listing]
        if not isinstance(listed, list):
            raise CallFailed("malformed", sent=True, unread=self)
        entries = [entry for entry in listed if all(entry.get(k) == v for k, v in equal.items())]
        if not entries:
            return None
        body = orjson.dumps(entries[-1])
        return ServiceResponse(body=body, status=self.status, request_id=self.request_id, size=len(body))


class CallFailed(Exception):
    """A call that brought no usable result, in the closed words of ToolFailed. Caught by the dispatcher.

    `answer` is the class of what came back; `unread` an answer that could not be read, with the first bytes
    of it.
    """

    def __init__(
        self,
        error: str,
        *,
        sent: bool,
        transient: bool = False,
        detail: bytes = b"",
        retry_after_ms: int | None = None,
        answer: Reply | None = None,
        unread: "ServiceResponse[Any] | None" = None,
    ) -> None:
        super().__init__(error)
        self.error, self.sent, self.transient = error, sent, transient
        self.detail, self.retry_after_ms = detail, retry_after_ms
        # A refusal by a bundled service proves that nothing was done; an unreadable answer does not.
        self.answer = WORDS.get(error, Reply.NONE) if answer is None else answer
        self.unread = unread

    def clean(self, clean: Callable[[bytes], bytes]) -> "CallFailed":
        """Redact everything that came with the failure, and return the failure itself."""
        self.detail = clean(self.detail)
        if self.unread is not None:
            self.unread = replace(self.unread, body=clean(self.unread.body))
        return self


@dataclass(slots=True, kw_only=True)
class SendWatch:
    """Tracks whether the first byte of a request was sent.

    From then on the outcome is unknown without an answer. `status` is that of the last answer, where it was
    noted.
    """

    sent: bool = False
    status: int = 0

    async def record_status(self, response: httpx2.Response) -> None:
        """Record the status of an answer to a call that was sent."""
        if self.sent and response.request.method == "POST":
            self.status = response.status_code

    async def __call__(self, event: str, _info: Mapping[str, Any]) -> None:
        if event.endswith("send_request_headers.started"):
            self.sent = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """The resources of a waiting tool.

    These are the call's key and exact argument bytes, its environment, its one service, the pinned version,
    the tenant and run (None: the call belongs to none), and the only way to change the run's files.
    """

    key: str
    arguments: bytes
    env: Environment
    origin: str
    loop: EffectLoop
    seconds: float
    mutating: bool
    watch: SendWatch = field(default_factory=SendWatch)
    spec: ToolSpec | None = None
    tenant: UUID | None = None
    run: UUID | None = None
    files: Files | None = None

    async def get(
        self, path: str, *parts: str, query: Mapping[str, str] | None = None
    ) -> ServiceResponse[Any]:
        """GET a path below the service's origin; each `{}` of `path` is one quoted part.

        Raises: CallFailed.
        """
        return await self._request("GET", path.format(*(quote(part, safe="") for part in parts)), query=query)

    async def post(self, path: str, body: bytes) -> ServiceResponse[Any]:
        """POST JSON bytes, under the call's idempotency key.

        Raises: CallFailed.
        """
        headers = {"content-type": "application/json", "idempotency-key": self.key}
        return await self._request("POST", path, body=body, headers=headers)

    async def _request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ServiceResponse[Any]:
        key = ("tools", self.mutating, self.origin)
        client = self.loop.client(key, lambda: _build_client(self.origin, reuse=not self.mutating))
        url = httpx2.URL(self.origin + path)
        timeout = httpx2.Timeout(self.seconds, connect=min(CONNECT_SECONDS, self.seconds))
        request = client.build_request(
            method, url, params=query, content=body, headers=headers, timeout=timeout,
            extensions={"trace": self.watch},
        )  # fmt: skip
        return await send_bounded_request(client, request, self.watch)


async def send_bounded_request(
    client: httpx2.AsyncClient,
    request: httpx2.Request,
    watch: SendWatch,
    *,
    follow: bool = False,
    clean: Callable[[bytes], bytes] = bytes,
) -> ServiceResponse[Any]:
    """Send a request and read its answer, bounded.

    `follow`: follow redirects, each hop checked again. `clean` redacts the answer's request id before it is
    cut.

    Raises: CallFailed for every failure.
    """
    with as_failures(watch):
        async with _streaming(client, request, follow=follow) as response:
            answer = await _read_bounded_answer(response, clean)
            return _require_success(answer, response)


@contextmanager
def as_failures(watch: SendWatch) -> Iterator[None]:
    """Convert every transport error to CallFailed."""
    try:
        yield
    except EgressRefused as error:
        raise CallFailed("refused", sent=watch.sent, detail=error.data["detail"].encode()) from error
    except httpx2.TimeoutException as error:
        raise _unsent_or("timeout", error, watch) from error
    except httpx2.ConnectError as error:
        raise CallFailed("unreachable", sent=False, transient=True, detail=_format_error(error)) from error
    except (httpx2.DecodingError, TooMuch, httpx2.TooManyRedirects) as error:
        raise CallFailed(
            "malformed", sent=True, detail=_format_error(error), unread=too_much(error)
        ) from error
    except httpx2.TransportError as error:
        raise _unsent_or("crashed", error, watch) from error


def too_much(error: Exception) -> ServiceResponse[Any] | None:
    """Return the first bytes of an answer that was not read to its end; None where none came."""
    if not isinstance(error, TooMuch) or not error.size:
        return None
    return ServiceResponse(
        body=error.first, status=error.status, size=error.size, whole=error.whole, truncated=True
    )


def _unsent_or(word: str, error: Exception, watch: SendWatch) -> CallFailed:
    if not watch.sent:
        return CallFailed("unreachable", sent=False, transient=True, detail=_format_error(error))
    return CallFailed(word, sent=True, transient=True, detail=_format_error(error))


def origin_of(url: str) -> str | None:
    """Return scheme://host:port of an http address without credentials, or None."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    default = 443 if parts.scheme == "https" else 80
    return f"{parts.scheme}://{host}" + (f":{port}" if port is not None and port != default else "")


class _streaming:  # noqa: N801 - a context manager, used as a word
    """The response, closed in any case; its body is not read yet."""

    def __init__(self, client: httpx2.AsyncClient, request: httpx2.Request, *, follow: bool) -> None:
        self._client, self._request, self._follow = client, request, follow
        self._response: httpx2.Response | None = None

    async def __aenter__(self) -> httpx2.Response:
        self._response = await self._client.send(self._request, stream=True, follow_redirects=self._follow)
        return self._response

    async def __aexit__(self, *_: object) -> None:
        if self._response is not None:
            await self._response.aclose()


async def _read_bounded_answer(
    response: httpx2.Response, clean: Callable[[bytes], bytes]
) -> ServiceResponse[Any]:
    kept, size, hashed = bytearray(), 0, sha256()
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        hashed.update(chunk)
        kept += chunk[: max(0, KEPT - len(kept))]
        if size > READ:
            break
    named = response.headers.get("x-request-id", "").encode("utf-8", "backslashreplace")
    request_id = clean(named).decode("utf-8", "replace")[:120]
    return ServiceResponse(
        body=bytes(kept), status=response.status_code, request_id=request_id,
        size=size, whole=hashed.hexdigest(), truncated=size > len(kept),
    )  # fmt: skip


def _require_success(answer: ServiceResponse[Any], response: httpx2.Response) -> ServiceResponse[Any]:
    """Return the answer of a successful call.

    Raises: CallFailed for any other status, with the class of the answer, which limits what it proves.
    """
    if response.is_success:
        return answer
    kind = answer_of(answer.status)
    if answer.status >= 500:
        wish = retry_after(response)
        raise CallFailed(
            "crashed", sent=True, transient=True, detail=answer.body, retry_after_ms=wish, answer=kind
        )
    if answer.status in (401, 403):
        raise CallFailed("unauthorized", sent=True, detail=answer.body, answer=kind)
    late = answer.status in (408, 425, 429)
    wish = retry_after(response) if late else None
    raise CallFailed(
        "refused", sent=True, transient=late, detail=answer.body, retry_after_ms=wish, answer=kind
    )


def retry_after(response: httpx2.Response) -> int | None:
    try:
        seconds = float(response.headers["retry-after"])
    except (KeyError, ValueError):
        return None
    return int(min(seconds * 1000, MAX_RETRY_AFTER_MS)) if isfinite(seconds) and seconds >= 0 else None


def _build_client(origin: str, *, reuse: bool) -> tuple[httpx2.AsyncClient, Close]:
    """Build a client that reaches only the operator's configured origin, which may be private.

    A change is sent on a connection of its own: a stale connection would leave the change in doubt for no
    reason.
    """
    limits = httpx2.Limits(
        max_connections=256, max_keepalive_connections=32 if reuse else 0, keepalive_expiry=2
    )
    client = guarded_client(operators_leave(origin), limits=limits, most_bytes=2 * READ)
    return client, client.aclose


def _format_error(error: Exception) -> bytes:
    return f"{type(error).__name__}: {error}"[:500].encode("utf-8", "backslashreplace")
