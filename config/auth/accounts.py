"""Sign-in as it differs from the library's: people cannot create accounts for themselves (R-SEC-2)."""

from __future__ import annotations

import hashlib
import math
from base64 import urlsafe_b64encode
from typing import Any
from uuid import UUID

import structlog
from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.authentication import get_authentication_records
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.providers.base.constants import AuthProcess
from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from requests import Session

from config.site.pages import too_many
from tenancy.actions.people import note_sign_in, note_tie
from tenancy.actions.sign_in import begin_attempt, forget_devices, remember_device, take_back_attempt
from tenancy.core.addresses import normalize_email_address
from tenancy.core.sign_in.limits import LimitKind, Refusal
from tenancy.db.clock import database_now
from tenancy.models import Person
from tenancy.web.client_address import visitor_of
from tenancy.web.device_cookie import device_of, fresh_device, set_device

LOG = structlog.get_logger(__name__)


class Accounts(DefaultAccountAdapter):  # type: ignore[misc]
    """Accounts are created by administrators. Errors name the waiting time and never the account."""

    error_messages = DefaultAccountAdapter.error_messages | {
        "email_password_mismatch": "The e-mail address and the password do not belong together.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Return False always."""
        return False

    def get_client_ip(self, request: HttpRequest) -> str:
        """Return the client's address as the rest of Interlock determines it.

        Raises: PermissionDenied if it cannot be determined.
        """
        address = visitor_of(request).address
        if address is None:
            raise PermissionDenied("the client's address cannot be told")
        return str(address)

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Rate-limit the attempt by address and account.

        Raises: ValidationError; ImmediateHttpResponse if the address has to wait whatever the account.
        """
        self._attempt = begin_sign_in_attempt(request, str(credentials.get("email", "")), "password")

    def _rollback_login_failed_rl_usage(self) -> None:
        """Take back the counted attempt: the library calls this method once the password was right."""
        take_back_attempt(self._attempt)

    def set_password(self, user: Person, password: str) -> None:
        """Set the password and forget every known browser until the person signs in there again."""
        super().set_password(user, password)
        forget_devices(user)

    def get_reauthentication_methods(self, user: Person) -> list[dict[str, Any]]:
        """Return the ways to reauthenticate: only second factors, if the person has any.

        The password is no substitute for a second factor.
        """
        methods: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        factors = [one for one in methods if one["id"] != "reauthenticate"]
        return factors or methods

    def post_login(self, request: HttpRequest, user: Person, **how: Any) -> HttpResponse:
        """Record the sign-in, by whatever method, and remember the browser."""
        note_sign_in(user, by=_list_authentication_methods(request, user))
        answer: HttpResponse = super().post_login(request, user, **how)
        device = device_of(request) or fresh_device()
        remember_device(user, device, visitor_of(request))
        set_device(answer, device)
        return answer

    def pre_login(self, request: HttpRequest, user: Person, **how: Any) -> HttpResponse | None:
        """Record the refused sign-in of a person who is authenticated but switched off."""
        if not user.is_active:
            note_sign_in(
                user, by=_list_authentication_methods(request, user), refused="The account is switched off."
            )
        answer: HttpResponse | None = super().pre_login(request, user, **how)
        return answer


def _list_authentication_methods(request: HttpRequest, user: Person) -> list[str]:
    """List the methods that authenticated this browser: `password`, `socialaccount`, `totp`, `webauthn`, …"""
    return [str(one.get("type") or one["method"]) for one in get_authentication_records(request, user)]


def begin_sign_in_attempt(request: HttpRequest, name: str, step: str) -> UUID:
    """Begin a sign-in attempt and return its id.

    Raises: as `Accounts.pre_authenticate`.
    """
    begun = begin_attempt(name, step, visitor_of(request), device_of(request))
    if not isinstance(begun, Refusal):
        return begun
    minutes = max(1, math.ceil((begun.until - database_now()).total_seconds() / 60))
    if begun.kind is LimitKind.ADDRESS:
        raise ImmediateHttpResponse(too_many(request, minutes))
    raise ValidationError(
        f"Too many attempts. Wait {_format_wait(minutes)}, then try again, or ask an administrator of "
        f"your tenant.",
        code="too_many_login_attempts",
    )


def _format_wait(minutes: int) -> str:
    if minutes > 90:
        return f"{math.ceil(minutes / 60)} hours"
    return "a minute" if minutes == 1 else f"{minutes} minutes"


class ForeignAccounts(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Accounts of the configured provider, which must be known here by their verified address.

    The library would remove the password of a person recognized by an address, since anybody might have
    created the account; here an administrator did.
    """

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Connect the provider's account to the person with that address at the first sign-in.

        Raises: PermissionDenied for any process but a sign-in: a stolen session would gain lasting access.
        """
        if sociallogin.state.get("process") != AuthProcess.LOGIN:
            raise PermissionDenied("the provider signs people in, and nothing else")
        if sociallogin.is_existing:
            return
        verified = [normalize_email_address(one.email) for one in sociallogin.email_addresses if one.verified]
        if person := Person.objects.filter(email__in=verified).first():
            sociallogin.connect(request, person)
            note_tie(person, provider=sociallogin.account.provider, account=sociallogin.account.uid)

    def get_requests_session(self) -> Session:
        """Return a session that follows no redirect, since only the provider's own addresses were checked."""
        session: Session = super().get_requests_session()
        session.max_redirects = 0
        return session

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, error: Any = None, exception: Any = None, **_more: Any
    ) -> None:
        """Log the reason of a failure for the operator. The page says only that the sign-in failed."""
        LOG.warning("sign_on_refused", provider=str(provider), error=str(error), reason=str(exception))

    def send_notification_mail(self, *args: Any, **kwargs: Any) -> None:
        """Send no mail: an unavailable mail server must not prevent a sign-in."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        """Return False always, and log the account that the provider proved but no administrator added."""
        account = sociallogin.account
        LOG.warning("sign_on_refused", provider=account.provider, account=account.uid, reason="nobody here")
        return False


class SecondFactors(DefaultMFAAdapter):  # type: ignore[misc]
    """Stores the seeds of codes encrypted (R-SEC-4): the database alone cannot produce a code."""

    error_messages = DefaultMFAAdapter.error_messages | {
        "incorrect_code": "The code is not right. Codes change every 30 seconds; try the next one.",
    }

    def encrypt(self, text: str) -> str:
        """Return the text as it is stored."""
        return _build_fernet().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Return the text in clear.

        Raises: InvalidToken under a foreign secret key.
        """
        return _build_fernet().decrypt(encrypted_text.encode()).decode()


def _build_fernet() -> MultiFernet:
    """Derive the encryption keys from the secret key and from those it replaced."""
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    digests = (hashlib.sha256(b"interlock.second-factor:" + str(one).encode()).digest() for one in secrets)
    return MultiFernet([Fernet(urlsafe_b64encode(digest)) for digest in digests])
