"""Sends one message to one endpoint, signed by the Standard Webhooks scheme (R-API-6, W3).

The address is checked when it is connected, as for tools; no redirect is followed. Of the answer only
status and length are kept: otherwise the delivery log could be used to read from a misrepresented endpoint.
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
from orchestrator.core.tools.egress_policy import EgressPolicy, target_of
from orchestrator.tools.gateways.egress.guarded_transport import Resolver, guarded_client, system_resolver
from traces.core.redaction import redact_secrets

SECONDS = 10.0
READING_SECONDS = 2.0
KEPT = 300
MOST_READ = 65_536
PREFIX = "whsec_"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingMessage:
    """A message to an endpoint.

    Each of the `secrets` signs it separately: the previous secret serves receivers that do not use the new
    one yet.
    """

    id: str
    url: str
    body: bytes
    at: datetime
    leave: EgressPolicy
    secrets: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptResult:
    """The result of one attempt.

    `status` is None without an answer, and `error` gives the reason. `wish` is the Retry-After, `length`
    the number of body bytes that were read.
    """

    status: int | None
    error: str = ""
    length: int | None = None
    milliseconds: int = 0
    wish: timedelta | None = None


def secret_of(chance: bytes) -> str:
    """Encode 32 random bytes as a signing secret, in the form that receivers store."""
    return PREFIX + b64encode(chance).decode()


def build_signed_headers(sending: OutgoingMessage) -> dict[str, str]:
    """Build the headers: the message's id, this attempt's time in seconds, and a signature per secret."""
    text = sending.body.decode()
    signatures = [Signer(secret).sign(sending.id, sending.at, text) for secret in sending.secrets]
    return {
        "webhook-id": sending.id,
        "webhook-timestamp": str(int(sending.at.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


async def send_webhook(sending: OutgoingMessage, *, resolver: Resolver = system_resolver) -> AttemptResult:
    """Send a message and return the result. Raises nothing: every failure is an attempt to be recorded."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(SECONDS):
            answer = await _post_message(sending, resolver)
    except EgressRefused as error:
        answer = AttemptResult(status=None, error=f"not sent: {error.data['detail']}"[:KEPT])
    except (TimeoutError, httpx2.TimeoutException):
        answer = AttemptResult(status=None, error=f"no answer within {SECONDS:.0f} seconds")
    except httpx2.ConnectError as error:
        answer = AttemptResult(status=None, error=_redact_error_text(f"no connection: {error}"))
    except Exception as error:  # noqa: BLE001 - what breaks in a new way must not hold up the others of its round
        # The error's own message is dropped, because it may quote the answer.
        answer = AttemptResult(status=None, error=f"{type(error).__name__}: the try broke off"[:KEPT])
    took = int((time.monotonic() - began) * 1000)
    return AttemptResult(
        status=answer.status, error=answer.error, length=answer.length, wish=answer.wish, milliseconds=took
    )


async def _post_message(sending: OutgoingMessage, resolver: Resolver) -> AttemptResult:
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
            return AttemptResult(
                status=response.status_code,
                length=await _count_response_bytes(response),
                wish=_parse_retry_after(response),
            )
        finally:
            await response.aclose()


async def _count_response_bytes(response: httpx2.Response) -> int:
    """Count the bytes of the answer, MOST_READ at most; none of them is kept.

    A body that breaks off is not an error, because the status was already received.
    """
    read = 0
    with suppress(httpx2.TransportError, TimeoutError):
        async with asyncio.timeout(READING_SECONDS):
            async for chunk in response.aiter_raw():
                read += len(chunk)
                if read >= MOST_READ:
                    break
    return min(read, MOST_READ)


def _redact_error_text(text: str) -> str:
    """Return an error text that may be stored: without secrets or NUL, and truncated."""
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
