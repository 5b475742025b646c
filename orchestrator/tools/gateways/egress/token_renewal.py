"""Asking a token endpoint for a new secret, by the guarded way out (R-TOOL-13, RFC 6749, 4.4 and 6)."""

from typing import NamedTuple

import httpx2

from orchestrator.core.tools.egress_policy import EgressPolicy
from orchestrator.tools.gateways.egress.guarded_transport import Resolver, guarded_client, system_resolver
from orchestrator.tools.gateways.egress.service_client import CallFailed, SendWatch, send_bounded_request
from tenancy.secret_store import Renewal

SECONDS = 10.0
LONGEST = 8_192
USUAL_SECONDS = 3_600


class RenewedSecret(NamedTuple):
    """A new secret, for how many seconds it lasts, and the refresh token to use from now on."""

    value: str
    seconds: int
    refresh_token: str


async def ask_token(
    renewal: Renewal, leave: EgressPolicy, *, resolver: Resolver = system_resolver
) -> RenewedSecret:
    """Ask once. Raises CallFailed `credential_expired`: nothing was sent to the tool's own origin."""
    form = {"grant_type": "refresh_token" if renewal.refresh_token else "client_credentials"}
    optional = {"refresh_token": renewal.refresh_token, "scope": renewal.scope}
    form |= {name: value for name, value in optional.items() if value}
    try:
        async with guarded_client(leave, resolver=resolver, timeout=httpx2.Timeout(SECONDS)) as client:
            auth = httpx2.BasicAuth(renewal.client_id, renewal.client_secret)
            request = next(auth.auth_flow(client.build_request("POST", renewal.url, data=form)))
            answer = await send_bounded_request(client, request, SendWatch())
        told = answer.json()
        value, seconds = told["access_token"], told.get("expires_in", USUAL_SECONDS)
    except (CallFailed, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CallFailed("credential_expired", sent=False, detail=_format_renewal_error(error)) from None
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST or not value.isprintable():
        raise CallFailed("credential_expired", sent=False, detail=b"the token endpoint gave no token")
    lasts = int(seconds) if isinstance(seconds, int | float) and 0 < seconds < 10**8 else USUAL_SECONDS
    following = told.get("refresh_token")
    return RenewedSecret(value, lasts, following if isinstance(following, str) else renewal.refresh_token)


def _format_renewal_error(error: Exception) -> bytes:
    """Which kind of thing went wrong: what the endpoint said may hold what it was asked with."""
    word = error.error if isinstance(error, CallFailed) else "malformed"
    return f"the token endpoint could not be asked: {word}".encode()
