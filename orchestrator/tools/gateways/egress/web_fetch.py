"""Fetches a web address for a tool: hop by hop, each checked, bounded in bytes and media type.

An address on the list that the run is pinned to is fetched without approval; the current list must then
contain it, too, and every hop. Any other address was approved by a person in its exact form: it may
redirect within its own origin, or to addresses on the list.

Spec: R-TOOL-19, G3, P8.
"""

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, lookup
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import urljoin

import httpx2

from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.tools.destinations import is_url_allowed
from orchestrator.core.tools.egress_policy import EgressPolicy, target_of
from orchestrator.tools.gateways.egress.guarded_transport import Resolver, guarded_client, system_resolver
from orchestrator.tools.gateways.egress.service_client import (
    CONNECT_SECONDS,
    CallFailed,
    ToolContext,
    as_failures,
    retry_after,
)
from orchestrator.tools.gateways.tenant_services import in_house
from orchestrator.tools.queries.destinations import web_rules
from orchestrator.tools.queries.tool_servers import leave_for

MOST_BYTES = 2 * 1024 * 1024
MOST_HOPS = 5
REDIRECTS = (301, 302, 303, 307, 308)
TEXT = (
    "application/json", "application/xml", "application/xhtml+xml", "application/javascript",
    "application/yaml", "application/x-ndjson", "application/rss+xml", "application/atom+xml",
)  # fmt: skip
AGENT = "Interlock/1 (agent tool)"
_DECLARED = re.compile(rb"charset=[\"' ]*([A-Za-z0-9._:-]{1,40})", re.I)
_BOMS = ((BOM_UTF8, "utf-8"), (BOM_UTF16_LE, "utf-16"), (BOM_UTF16_BE, "utf-16"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedContent:
    """The content of an address.

    `url` is the final address, `sha256` the digest of the bytes that were read; `cut`: there was more.
    """

    url: str
    media_type: str
    charset: str
    body: bytes
    sha256: str
    cut: bool

    def text(self) -> str:
        """Decode the body; invalid bytes become replacement characters."""
        return self.body.decode(self.charset, "replace").removeprefix("\ufeff")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The origins that a call may reach, within the tenant's own permission.

    These are the origins of `allow` and, where a person has approved it, `approved`.
    """

    allow: tuple[str, ...]
    tenants: EgressPolicy
    approved: str = ""

    def leave(self, url: str) -> EgressPolicy:
        """Return the permission for one hop.

        Raises: EgressRefused.
        """
        origin = target_of(url).origin
        if origin != self.approved and not is_url_allowed(self.allow, url):
            raise EgressRefused(detail=f"{url[:300]} is not on the list of this tenant")
        return self.tenants.evolve(origins=(origin,))


async def read_web(context: ToolContext, url: str, *, resolver: Resolver = system_resolver) -> FetchedContent:
    """Fetch an address; redirects are followed and checked.

    Raises: CallFailed.
    """
    reach = await in_house(context, lambda: _build_egress_reach(context, url))
    at = url
    for _ in range(MOST_HOPS):
        with as_failures(context.watch):
            found = await _fetch_hop(context, at, reach.leave(at), resolver)
        if isinstance(found, FetchedContent):
            return found
        at = found
    raise CallFailed("refused", sent=True, detail=f"it leads on more than {MOST_HOPS} times".encode())


def _build_egress_reach(context: ToolContext, url: str) -> Reach:
    """Return the current list, and the address itself where the pinned list lacks it.

    An address outside the pinned list was approved by a person.
    """
    pinned = context.spec.egress if context.spec is not None else None
    listed = pinned is None or is_url_allowed(pinned.allow, url)
    with as_failures(context.watch):
        origin = target_of(url).origin
    return Reach(allow=web_rules().allow, tenants=leave_for(origin), approved="" if listed else origin)


async def _fetch_hop(
    context: ToolContext, url: str, leave: EgressPolicy, resolver: Resolver
) -> FetchedContent | str:
    """Fetch one hop and return its content, or the address that it redirects to."""
    timeout = httpx2.Timeout(context.seconds, connect=min(CONNECT_SECONDS, context.seconds))
    async with guarded_client(
        leave, resolver=resolver, timeout=timeout, most_bytes=4 * MOST_BYTES, headers={"user-agent": AGENT}
    ) as client:
        asked = client.build_request("GET", url, extensions={"trace": context.watch})
        response = await client.send(asked, stream=True)
        try:
            if response.status_code in REDIRECTS:
                return urljoin(url, response.headers.get("location", "")).partition("#")[0]
            _check_response(response)
            return await _read_bounded_body(url, response)
        finally:
            await response.aclose()


def _check_response(response: httpx2.Response) -> None:
    """Check that an answer is a success and can be read as text.

    Raises: CallFailed.
    """
    status = response.status_code
    if not response.is_success:
        late = status in (408, 425, 429) or status >= 500
        raise CallFailed(
            "crashed" if status >= 500 else "refused", sent=True, transient=late,
            detail=f"it answers {status}".encode(), retry_after_ms=retry_after(response) if late else None,
        )  # fmt: skip
    kind = _media_type(response)
    if not (kind.startswith("text/") or kind in TEXT or kind.endswith(("+json", "+xml"))):
        detail = f"it is {kind[:80] or 'of no stated kind'}, which is no text"
        raise CallFailed("refused", sent=True, detail=detail.encode("ascii", "replace"))


async def _read_bounded_body(url: str, response: httpx2.Response) -> FetchedContent:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > MOST_BYTES:
            break
    kept = bytes(body[:MOST_BYTES])
    return FetchedContent(
        url=url, media_type=_media_type(response), charset=_detect_charset(response, kept), body=kept,
        sha256=sha256(kept).hexdigest(), cut=len(body) > MOST_BYTES,
    )  # fmt: skip


def _media_type(response: httpx2.Response) -> str:
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


def _detect_charset(response: httpx2.Response, body: bytes) -> str:
    """Return the charset of a byte-order mark, else of the header, else of the page itself, else UTF-8."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return name
    for given in (response.charset_encoding, _parse_meta_charset(body)):
        try:
            if given:
                return lookup(given).name
        except (LookupError, ValueError):
            continue
    return "utf-8"


def _parse_meta_charset(body: bytes) -> str:
    match = _DECLARED.search(body[:1024])
    return match[1].decode() if match is not None else ""
