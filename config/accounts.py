"""How people sign in, where ours differs from the library's: nobody makes an account for themselves
(R-SEC-2)."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from typing import Any

import structlog
from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.authentication import get_authentication_records
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.providers.base.constants import AuthProcess
from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from requests import Session

from tenancy.actions.people import note_sign_in, note_tie
from tenancy.core.addresses import folded
from tenancy.models import Person

LOG = structlog.get_logger(__name__)


class Accounts(DefaultAccountAdapter):  # type: ignore[misc]
    """Accounts are made by administrators; errors name the wait and never the account."""

    error_messages = DefaultAccountAdapter.error_messages | {
        "too_many_login_attempts": "Too many attempts. Wait five minutes, then try again.",
        "email_password_mismatch": "The e-mail address and the password do not belong together.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Never."""
        return False

    def post_login(self, request: HttpRequest, user: Person, **how: Any) -> HttpResponse:
        """Signed in, by whatever way: it is written down."""
        note_sign_in(user, by=_ways(request, user))
        answer: HttpResponse = super().post_login(request, user, **how)
        return answer

    def pre_login(self, request: HttpRequest, user: Person, **how: Any) -> HttpResponse | None:
        """Proven to be who they are, and switched off: that is written down, too."""
        if not user.is_active:
            note_sign_in(user, by=_ways(request, user), refused="The account is switched off.")
        answer: HttpResponse | None = super().pre_login(request, user, **how)
        return answer


def _ways(request: HttpRequest, user: Person) -> list[str]:
    """How this browser proved who is there: `password`, `socialaccount`, `totp`, `webauthn`, …"""
    return [str(one.get("type") or one["method"]) for one in get_authentication_records(request, user)]


class ForeignAccounts(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Who comes from the configured provider must be known here by their verified address.

    The library would take the password of whom it recognizes by an address, for anybody might have made the
    account; here an administrator did.
    """

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """The first time, tie the provider's account to the person with that address. Raises
        PermissionDenied where it is not to sign in: a borrowed session would tie a lasting door to itself."""
        if sociallogin.state.get("process") != AuthProcess.LOGIN:
            raise PermissionDenied("the provider signs people in, and nothing else")
        if sociallogin.is_existing:
            return
        verified = [folded(one.email) for one in sociallogin.email_addresses if one.verified]
        if person := Person.objects.filter(email__in=verified).first():
            sociallogin.connect(request, person)
            note_tie(person, provider=sociallogin.account.provider, account=sociallogin.account.uid)

    def get_requests_session(self) -> Session:
        """One that follows no redirect: only the provider's own addresses were looked at."""
        session: Session = super().get_requests_session()
        session.max_redirects = 0
        return session

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, error: Any = None, exception: Any = None, **_more: Any
    ) -> None:
        """The page says that it failed; why is for who runs the house."""
        LOG.warning("sign_on_refused", provider=str(provider), error=str(error), reason=str(exception))

    def send_notification_mail(self, *args: Any, **kwargs: Any) -> None:
        """None: a mail server that is away must keep nobody out."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        """Never; whom the provider proved and nobody added is for who runs the house."""
        account = sociallogin.account
        LOG.warning("sign_on_refused", provider=account.provider, account=account.uid, reason="nobody here")
        return False


class SecondFactors(DefaultMFAAdapter):  # type: ignore[misc]
    """What codes are made from is stored encrypted (R-SEC-4): the database alone makes none."""

    error_messages = DefaultMFAAdapter.error_messages | {
        "incorrect_code": "The code is not right. Codes change every 30 seconds; try the next one.",
    }

    def encrypt(self, text: str) -> str:
        """As it is stored."""
        return _lock().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """As it was. Raises InvalidToken under a foreign secret key."""
        return _lock().decrypt(encrypted_text.encode()).decode()


def _lock() -> MultiFernet:
    """Keys drawn from the secret key, and from those it replaced."""
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    digests = (hashlib.sha256(b"interlock.second-factor:" + str(one).encode()).digest() for one in secrets)
    return MultiFernet([Fernet(urlsafe_b64encode(digest)) for digest in digests])
