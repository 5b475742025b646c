"""OpenID Connect sign-in: the checks of a relying party that the library leaves out (R-SEC-2).

The library trusts the identity token because it came over TLS. Here its signature, issuer, audience, age and
nonce are checked as well, the provider's description is compared with the configured address, and the user
information must concern the person whom the token names.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from hmac import compare_digest
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import jwt
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.helpers import render_authentication_error
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.base.constants import AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.http import Http404, HttpRequest, HttpResponse
from requests import RequestException

# Public-key algorithms only: a token signed with the client's secret, or unsigned, is refused.
ALGORITHMS: Final = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip
REQUIRED: Final = ("iss", "sub", "aud", "exp", "iat")
ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
# The largest accepted difference between the provider's clock and ours.
LEEWAY_SECONDS: Final = 30
WELL_KNOWN: Final = "/.well-known/"


class IdentityRefused(OAuth2Error):  # type: ignore[misc]
    """What the provider answered proves nobody."""


def verified_claims(
    token: str, keys: dict[str, Any], *, issuer: str, client: str, nonce: str
) -> dict[str, Any]:
    """Return the verified claims of an identity token (OpenID Connect Core 3.1.3.7).

    Raises: IdentityRefused.
    """
    try:
        header = jwt.get_unverified_header(token)
        if header.get("alg") not in ALGORITHMS:
            raise IdentityRefused(f"the token is signed by {header.get('alg')!r}")
        claims: dict[str, Any] = jwt.decode(
            token,
            key=_select_signing_key(keys, header),
            algorithms=[header["alg"]],
            audience=client,
            issuer=issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": list(REQUIRED)},
        )
    except (jwt.PyJWTError, TypeError, ValueError, KeyError) as fault:
        raise IdentityRefused(f"the token does not hold: {fault}") from fault
    # `azp` names the client for which a token with several audiences was issued.
    several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if claims.get("azp", None if several else client) != client:
        raise IdentityRefused("the token was made for another client")
    if not compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
        raise IdentityRefused("the token answers another sign-in")
    return claims


def _select_signing_key(keys: dict[str, Any], header: dict[str, Any]) -> Any:
    """Return the provider's public key that the token names, or the only key if it names none.

    Raises: IdentityRefused.
    """
    fitting = [
        key
        for key in jwt.PyJWKSet.from_dict(keys).keys
        if key.key_type != "oct" and header.get("kid") in (None, key.key_id)
    ]
    if len(fitting) != 1:
        raise IdentityRefused("the token names no key of the provider")
    return fitting[0].key


class Identities(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """One sign-in through the provider. `nonce` is the one sent with this browser's redirect."""

    nonce: str | None = None

    @property
    def openid_config(self) -> dict[str, Any]:
        """Return the provider's description of itself.

        Raises: IdentityRefused if it describes another issuer, or if an address is neither https nor local.
        """
        expected = self.get_provider().server_url.partition(WELL_KNOWN)[0].rstrip("/")
        # An attacker in between could name other endpoints, so the address is checked before the fetch.
        if not _is_confidential_url(expected):
            raise IdentityRefused(f"{expected} is no https address")
        found: dict[str, Any] = super().openid_config
        if str(found.get("issuer", "")).rstrip("/") != expected:
            raise IdentityRefused(f"{expected} describes another issuer")
        for name in (*ENDPOINTS, *(["userinfo_endpoint"] if "userinfo_endpoint" in found else [])):
            if not _is_confidential_url(str(found.get(name, ""))):
                raise IdentityRefused(f"{name} of the provider is no https address")
        return found

    def complete_login(self, request: HttpRequest, app: SocialApp, token: Any, **kwargs: Any) -> Any:
        """Return the sign-in of the person whom the identity token names.

        Raises: IdentityRefused, RequestException.
        """
        told, description = kwargs["response"].get("id_token"), self.openid_config
        if not isinstance(told, str) or self.nonce is None:
            raise IdentityRefused("the provider sent no identity token")
        claims = verified_claims(
            told,
            self._fetch(description["jwks_uri"]),
            issuer=description["issuer"],
            client=app.client_id,
            nonce=self.nonce,
        )
        source = claims
        if "userinfo_endpoint" in description:
            said = self._fetch_user_info(token.token)
            # Any access token can read that address, so the answer must concern the subject of the identity
            # token.
            if said.get("sub") != claims["sub"]:
                raise IdentityRefused("the provider told of somebody else")
            # An address and its verified flag must come from the same source.
            source = said if "email" in said else claims
        known = {name: source.get(name) for name in ("email", "email_verified", "name")}
        return self.get_provider().sociallogin_from_response(
            request, {"iss": claims["iss"], "sub": claims["sub"], **known}
        )

    @staticmethod
    def _fetch(url: str) -> dict[str, Any]:
        with get_adapter().get_requests_session() as session:
            answer = session.get(url)
            answer.raise_for_status()
        found = answer.json()
        if not isinstance(found, dict):
            raise IdentityRefused("the provider's keys are no document")
        return found


def _is_confidential_url(url: str) -> bool:
    """Return whether no third party can read or change the traffic to `url`: https, or this machine."""
    at = urlsplit(url)
    if at.scheme == "https" and at.hostname:
        return True
    try:
        return at.scheme == "http" and ip_address(at.hostname or "").is_loopback
    except ValueError:
        return at.scheme == "http" and at.hostname == "localhost"


class Provider(OpenIDConnectProvider):  # type: ignore[misc]
    """The configured provider. Its request parameters are set here: those of a link are not passed on."""

    oauth2_adapter_class = Identities

    def redirect(
        self, request: HttpRequest, process: str, next_url: str | None = None, data: Any = None, **kwargs: Any
    ) -> HttpResponse:
        """Send the browser to the provider with a nonce, which is stored with the state.

        Raises: IdentityRefused for any process but a sign-in: accounts cannot be connected manually.
        """
        if process != AuthProcess.LOGIN:
            raise IdentityRefused(f"the provider signs people in, and does not {process!r}")
        nonce = secrets.token_urlsafe(32)
        kwargs |= {"auth_params": self.get_auth_params() | {"nonce": nonce}, "scope": self.get_scope()}
        answer: HttpResponse = super().redirect(request, process, next_url, data, nonce=nonce, **kwargs)
        return answer

    def extract_uid(self, data: dict[str, Any]) -> str:
        """Return one name per person and issuer: different providers may use the same subject."""
        return hashlib.sha256(f"{data['iss']}\n{data['sub']}".encode()).hexdigest()

    def extract_email_addresses(self, data: dict[str, Any]) -> list[Any]:
        """Return the address, verified only if the provider says so explicitly.

        An address that is not plain ASCII is not verified, since another person's address may fold to it.
        """
        said = data.get("email_verified")
        verified = (said is True or said == "true") and str(data.get("email")).isascii()
        addresses: list[Any] = super().extract_email_addresses({**data, "email_verified": verified})
        return addresses


class _CallbackView(OAuth2CallbackView):  # type: ignore[misc]
    def _get_state(self, request: HttpRequest, provider: Provider) -> Any:
        state, answer = super()._get_state(request, provider)
        self.adapter.nonce = (state or {}).get("nonce")
        return state, answer


def redirect_to_provider(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Redirect to the provider."""
    return _call_provider_view(OAuth2LoginView.adapter_view, request, provider_id)


def come_back(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Handle the return from the provider, with its code."""
    return _call_provider_view(_CallbackView.adapter_view, request, provider_id)


def _call_provider_view(view: Callable[..., Any], request: HttpRequest, provider_id: str) -> HttpResponse:
    adapter = Identities(request, provider_id)
    try:
        provider = adapter.get_provider()
    except SocialApp.DoesNotExist:
        raise Http404 from None
    try:
        answer: HttpResponse = view(adapter)(request)
    except (OAuth2Error, RequestException, ValueError) as fault:
        # The description is read outside the library's error handling, and a provider may be unavailable.
        answer = render_authentication_error(request, provider, exception=fault)
    return answer
