"""The outbound transport for tools: every request is checked by its resolved address (P8, G3, W3).

The name is resolved here, each address is checked, and the connection goes to a checked address, under the
name's own certificate: a name that resolves differently a moment later is not resolved again. Redirects
pass through here hop by hop. There is no proxy and no compression, and bytes are bounded.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import cache
from hashlib import sha256
from ipaddress import ip_address
from ssl import SSLContext
from typing import Any

import httpx2

from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.tools.egress_policy import EgressPolicy, Target, target_of
from orchestrator.tools.gateways.egress.own_listeners import is_here

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
MOST_BYTES = 16 * 1024 * 1024
MOST_ADDRESSES = 16
RESOLVE_SECONDS = 5.0
# The number of bytes kept of an answer that was not read to its end.
FIRST = 16 * 1024


class TooMuch(httpx2.TransportError):
    """The answer is larger than an answer may be, or comes in a form that could grow while it is read.

    `first` are its first bytes, `size` and `whole` the number and SHA-256 of those that were read.
    """

    def __init__(self, message: str, *, request: httpx2.Request | None = None) -> None:
        super().__init__(message, request=request)
        self.first, self.size, self.whole, self.status = b"", 0, "", 0


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """Return the addresses that the system resolves for a name.

    Raises: EgressRefused where there is none.
    """
    try:
        async with asyncio.timeout(RESOLVE_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, TimeoutError, UnicodeError) as error:
        raise EgressRefused(detail=f"{host} has no address that could be found", unresolved=True) from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))[:MOST_ADDRESSES]


async def resolve_allowed_addresses(
    target: Target, leave: EgressPolicy, resolver: Resolver = system_resolver
) -> tuple[str, ...]:
    """Return the addresses to connect to for a target, each allowed.

    Raises: EgressRefused.
    """
    leave.admit(target)
    if target.literal is not None:
        found = [target.host]
    else:
        found = [str(ip_address(one)) for one in await resolver(target.host, target.port)]
    return leave.admit_all(target, found, here=frozenset(one for one in found if is_here(one)))


def look_before_saving(url: str, leave: EgressPolicy, resolver: Resolver = system_resolver) -> Target:
    """Return the target of a URL, checked as it will be when it is connected. Waits.

    Raises: EgressRefused.
    """
    target = target_of(url)
    asyncio.run(resolve_allowed_addresses(target, leave, resolver))
    return target


def operators_leave(origin: str) -> EgressPolicy:
    """Build the permission for an origin that the operator's own settings name exactly.

    The origin may be private, or a server of this deployment, at its own port only.
    """
    target = target_of(origin)
    return EgressPolicy(origins=(target.origin,), private=(target.place,))


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Connects to what `leave` allows and nothing else.

    Raises: EgressRefused before anything is sent.
    """

    def __init__(
        self,
        leave: EgressPolicy,
        *,
        resolver: Resolver = system_resolver,
        limits: httpx2.Limits | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._leave, self._resolver, self._most = leave, resolver, most_bytes
        alone = httpx2.Limits(max_connections=16, max_keepalive_connections=0)
        self._inner = httpx2.AsyncHTTPTransport(
            verify=_build_ssl_context(), trust_env=False, limits=limits or alone, retries=0
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Perform one hop."""
        target = target_of(str(request.url))
        addresses = await resolve_allowed_addresses(target, self._leave, self._resolver)
        response = await self._connect_first(request, target, addresses)
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            await response.aclose()
            raise TooMuch("compressed, though that was not asked for", request=request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        return httpx2.Response(
            response.status_code, headers=response.headers, extensions=response.extensions,
            stream=_BoundedStream(response.stream, self._most, response.status_code),
        )  # fmt: skip

    async def _connect_first(
        self, request: httpx2.Request, target: Target, addresses: Sequence[str]
    ) -> httpx2.Response:
        """Return the answer of the first address that can be connected; nothing was sent to the others."""
        for place, address in enumerate(addresses):
            try:
                return await self._inner.handle_async_request(_pin_request(request, target, address))
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if place == len(addresses) - 1:
                    raise
        raise EgressRefused(detail=f"{target.host} has no address")

    async def aclose(self) -> None:
        """Close its connections."""
        await self._inner.aclose()


def guarded_client(
    leave: EgressPolicy,
    *,
    resolver: Resolver = system_resolver,
    limits: httpx2.Limits | None = None,
    most_bytes: int = MOST_BYTES,
    headers: dict[str, str] | None = None,
    **more: Any,
) -> httpx2.AsyncClient:
    """Build a client whose every hop is checked: no proxy, no foreign cookies, no implicit redirects."""
    transport = GuardedTransport(leave, resolver=resolver, limits=limits, most_bytes=most_bytes)
    return httpx2.AsyncClient(
        transport=transport, trust_env=False, follow_redirects=False,
        headers={"accept-encoding": "identity", **(headers or {})}, **more,
    )  # fmt: skip


class _BoundedStream(httpx2.AsyncByteStream):
    """A body that raises TooMuch past its bound."""

    def __init__(self, inner: httpx2.AsyncByteStream, most: int, status: int) -> None:
        self._inner, self._most, self._status = inner, most, status

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, first, hashed = 0, bytearray(), sha256()
        async for chunk in self._inner:
            size += len(chunk)
            hashed.update(chunk)
            first += chunk[: max(0, FIRST - len(first))]
            if size > self._most:
                passed = TooMuch(f"more than {self._most} bytes")
                passed.first, passed.size, passed.whole = bytes(first), size, hashed.hexdigest()
                passed.status = self._status
                raise passed
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def _pin_request(request: httpx2.Request, target: Target, address: str) -> httpx2.Request:
    """Return the same request to one address, with the name's own Host header and certificate."""
    return httpx2.Request(
        request.method, request.url.copy_with(host=address), headers=request.headers, stream=request.stream,
        extensions={**request.extensions, "sni_hostname": target.host},
    )  # fmt: skip


@cache
def _build_ssl_context() -> SSLContext:
    return httpx2.create_ssl_context(trust_env=False)
