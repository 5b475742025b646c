"""How people sign in, where ours differs from the library's: nobody makes an account for themselves
(R-SEC-2)."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.http import HttpRequest


class Accounts(DefaultAccountAdapter):  # type: ignore[misc]
    """Accounts are made by administrators; errors name the wait and never the account."""

    error_messages = DefaultAccountAdapter.error_messages | {
        "too_many_login_attempts": "Too many attempts. Wait five minutes, then try again.",
        "email_password_mismatch": "The e-mail address and the password do not belong together.",
        "incorrect_code": "The code is not right. Codes change every 30 seconds; try the next one.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Never."""
        return False


class ForeignAccounts(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Who comes from the configured provider must be known here by their verified address."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        """Never."""
        return False
