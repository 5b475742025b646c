"""Sending one message to one endpoint, signed by the Standard Webhooks scheme (R-API-6, W3).

The address is judged when it is connected, as for tools; no redirect is followed. Of the answer its status
and its length are kept, and not a word: an endpoint that is not what it seems would be read through the log.
"""

import asyncio
import time
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import isfinite

import httpx2
from standardwebhooks.webhooks import Webhook as Signer

from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.notifications.delivery_policy import admit_endpoint
from orchestrator.core.tools.egress_policy import Leave, target_of
from orchestrator.gateways.tools.guarded_transport import Resolver, guarded_client, system_resolver
from traces.core.redaction import redact_secrets

SECONDS = 10.0
READING_SECONDS = 2.0
KEPT = 300
MOST_READ = 65_536
PREFIX = "whsec_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """A message to an endpoint. `secrets` sign it, each on its own: the one before is known to those who have
    not taken up the new one yet."""

    id: str
    url: str
    body: bytes
    at: datetime
    leave: Leave
    secrets: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What came of it. `status` None: no answer, and `error` says why; `wish` is its Retry-After, `length`
    how many bytes of its body were read."""

    status: int | None
    error: str = ""
    length: int | None = None
    milliseconds: int = 0
    wish: timedelta | None = None


def secret_of(chance: bytes) -> str:
    """A signing secret as receivers write it down, of 32 bytes of chance."""
    return PREFIX + b64encode(chance).decode()


def build_signed_headers(sending: Sending) -> dict[str, str]:
    """The headers: the message's id, the second of this try, and a signature by each secret."""
    text = sending.body.decode()
    signatures = [Signer(secret).sign(sending.id, sending.at, text) for secret in sending.secrets]
    return {
        "webhook-id": sending.id,
        "webhook-timestamp": str(int(sending.at.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


async def send_webhook(sending: Sending, *, resolver: Resolver = system_resolver) -> Sent:
    """Send it and say what came of it. Raises nothing: every failure is a try to be written down."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(SECONDS):
            answer = await _post_message(sending, resolver)
    except EgressRefused as error:
        answer = Sent(status=None, error=f"not sent: {error.data['detail']}"[:KEPT])
    except (TimeoutError, httpx2.TimeoutException):
        answer = Sent(status=None, error=f"no answer within {SECONDS:.0f} seconds")
    except httpx2.ConnectError as error:
        answer = Sent(status=None, error=_redact_error_text(f"no connection: {error}"))
    except Exception as error:  # noqa: BLE001 - what breaks in a new way must not hold up the others of its round
        # Not the error's own words: they may quote what was answered.
        answer = Sent(status=None, error=f"{type(error).__name__}: the try broke off"[:KEPT])
    took = int((time.monotonic() - began) * 1000)
    return Sent(
        status=answer.status, error=answer.error, length=answer.length, wish=answer.wish, milliseconds=took
    )


async def _post_message(sending: Sending, resolver: Resolver) -> Sent:
    admit_endpoint(target_of(sending.url), sending.leave)
    headers = {
        "content-type": "application/json",
        "user-agent": "Interlock-Webhooks/1",
        **build_signed_headers(sending),
    }
    async with guarded_client(sending.leave, resolver=resolver, headers=headers, timeout=SECONDS) as client:
        request = client.build_request("POST", sending.url, content=sending.body)
        response = await client.send(request, stream=True)
        try:
            return Sent(
                status=response.status_code,
                length=await _count_response_bytes(response),
                wish=_parse_retry_after(response),
            )
        finally:
            await response.aclose()


async def _count_response_bytes(response: httpx2.Response) -> int:
    """How many bytes the answer has, MOST_READ at most: nothing else of it is kept. A body that breaks off
    takes nothing back: the status has been said."""
    read = 0
    with suppress(httpx2.TransportError, TimeoutError):
        async with asyncio.timeout(READING_SECONDS):
            async for chunk in response.aiter_raw():
                read += len(chunk)
                if read >= MOST_READ:
                    break
    return min(read, MOST_READ)


def _redact_error_text(text: str) -> str:
    """As it may be kept: no secret, no NUL, not long."""
    return (
        redact_secrets(text.encode("utf-8", "replace"))[0]
        .decode()
        .replace("\0", "\N{REPLACEMENT CHARACTER}")[:KEPT]
    )


def _parse_retry_after(response: httpx2.Response) -> timedelta | None:
    if response.status_code not in (429, 503):
        return None
    try:
        seconds = float(response.headers["retry-after"])
    except (KeyError, ValueError):
        return None
    return timedelta(seconds=min(seconds, 86_400.0)) if isfinite(seconds) and seconds > 0 else None
