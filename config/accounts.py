"""How people sign in, where ours differs from the library's: nobody makes an account for themselves
(R-SEC-2)."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.http import HttpRequest


class Accounts(DefaultAccountAdapter):  # type: ignore[misc]
    """Accounts are made by administrators; errors name the wait and never the account."""

    error_messages = DefaultAccountAdapter.error_messages | {
        "too_many_login_attempts": "Too many attempts. Wait five minutes, then try again.",
        "email_password_mismatch": "The e-mail address and the password do not belong together.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Never."""
        return False


class ForeignAccounts(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Who comes from the configured provider must be known here by their verified address."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        """Never."""
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
