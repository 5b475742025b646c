"""Signing in by a provider of identities: what OpenID Connect asks of who relies on one, and the library
leaves out (R-SEC-2).

The library takes the identity token for true because it came over TLS. Here its signature, issuer, audience,
age and nonce are checked all the same, the provider's own description is held against the configured address,
and what the provider says of a person must be of the person whom the token names.
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

# With a public key only: a token signed with the client's secret, or not at all, is not one.
ALGORITHMS: Final = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip
REQUIRED: Final = ("iss", "sub", "aud", "exp", "iat")
ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
# How far the provider's clock may be from ours.
LEEWAY_SECONDS: Final = 30
WELL_KNOWN: Final = "/.well-known/"


class IdentityRefused(OAuth2Error):  # type: ignore[misc]
    """What the provider answered proves nobody."""


def verified_claims(
    token: str, keys: dict[str, Any], *, issuer: str, client: str, nonce: str
) -> dict[str, Any]:
    """The claims of an identity token (OpenID Connect Core 3.1.3.7). Raises IdentityRefused."""
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
    # `azp` says for whom a token was made that several may read.
    several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if claims.get("azp", None if several else client) != client:
        raise IdentityRefused("the token was made for another client")
    if not compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
        raise IdentityRefused("the token answers another sign-in")
    return claims


def _select_signing_key(keys: dict[str, Any], header: dict[str, Any]) -> Any:
    """The provider's public key that the token names; the only one of its kind where it names none."""
    fitting = [
        key
        for key in jwt.PyJWKSet.from_dict(keys).keys
        if key.key_type != "oct" and header.get("kid") in (None, key.key_id)
    ]
    if len(fitting) != 1:
        raise IdentityRefused("the token names no key of the provider")
    return fitting[0].key


class Identities(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """One sign-in by the provider. `nonce` is the one this browser was sent away with."""

    nonce: str | None = None

    @property
    def openid_config(self) -> dict[str, Any]:
        """What the provider says of itself. Raises IdentityRefused where it is another's, or not by TLS."""
        expected = self.get_provider().server_url.partition(WELL_KNOWN)[0].rstrip("/")
        # Whoever stands between could name endpoints of their own: asked first, fetched then.
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
        """The sign-in of whom the identity token names. Raises IdentityRefused, RequestException."""
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
            # Anybody's access token opens that address: it must be of the one whom the token proves.
            if said.get("sub") != claims["sub"]:
                raise IdentityRefused("the provider told of somebody else")
            # An address and whether it is verified come from one mouth.
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
    """Whether nobody between can read or change what goes there: https, or this machine."""
    at = urlsplit(url)
    if at.scheme == "https" and at.hostname:
        return True
    try:
        return at.scheme == "http" and ip_address(at.hostname or "").is_loopback
    except ValueError:
        return at.scheme == "http" and at.hostname == "localhost"


class Provider(OpenIDConnectProvider):  # type: ignore[misc]
    """The configured provider. What it is asked is ours to say: a link's parameters do not reach it."""

    oauth2_adapter_class = Identities

    def redirect(
        self, request: HttpRequest, process: str, next_url: str | None = None, data: Any = None, **kwargs: Any
    ) -> HttpResponse:
        """Send the browser there with a nonce, remembered beside the state. Raises IdentityRefused where
        something else is wanted than signing in: tying an account by hand is no way in here."""
        if process != AuthProcess.LOGIN:
            raise IdentityRefused(f"the provider signs people in, and does not {process!r}")
        nonce = secrets.token_urlsafe(32)
        kwargs |= {"auth_params": self.get_auth_params() | {"nonce": nonce}, "scope": self.get_scope()}
        answer: HttpResponse = super().redirect(request, process, next_url, data, nonce=nonce, **kwargs)
        return answer

    def extract_uid(self, data: dict[str, Any]) -> str:
        """One name for one person of one issuer: another provider's people have the same subjects."""
        return hashlib.sha256(f"{data['iss']}\n{data['sub']}".encode()).hexdigest()

    def extract_email_addresses(self, data: dict[str, Any]) -> list[Any]:
        """The address, verified where the provider says exactly that; one that is not plain ASCII is
        nobody's, for another's may fold to it."""
        said = data.get("email_verified")
        verified = (said is True or said == "true") and str(data.get("email")).isascii()
        addresses: list[Any] = super().extract_email_addresses({**data, "email_verified": verified})
        return addresses


class _Back(OAuth2CallbackView):  # type: ignore[misc]
    def _get_state(self, request: HttpRequest, provider: Provider) -> Any:
        state, answer = super()._get_state(request, provider)
        self.adapter.nonce = (state or {}).get("nonce")
        return state, answer


def redirect_to_provider(request: HttpRequest, provider_id: str) -> HttpResponse:
    """To the provider."""
    return _call_provider_view(OAuth2LoginView.adapter_view, request, provider_id)


def come_back(request: HttpRequest, provider_id: str) -> HttpResponse:
    """From the provider, with its code."""
    return _call_provider_view(_Back.adapter_view, request, provider_id)


def _call_provider_view(view: Callable[..., Any], request: HttpRequest, provider_id: str) -> HttpResponse:
    adapter = Identities(request, provider_id)
    try:
        provider = adapter.get_provider()
    except SocialApp.DoesNotExist:
        raise Http404 from None
    try:
        answer: HttpResponse = view(adapter)(request)
    except (OAuth2Error, RequestException, ValueError) as fault:
        # The description is read outside of what the library guards, and a provider may be away.
        answer = render_authentication_error(request, provider, exception=fault)
    return answer
