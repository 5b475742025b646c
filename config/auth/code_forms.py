"""The forms that ask for a code: a wrong one counts as a wrong password does (R-SEC-11)."""

from __future__ import annotations

from allauth.core import context
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm

from config.auth.accounts import begin_sign_in_attempt
from tenancy.actions.sign_in import take_back_attempt


class CodeForm(AuthenticateForm):  # type: ignore[misc]
    """The second half of signing in."""

    def clean_code(self) -> str:
        """The code, if it is right. Raises ValidationError."""
        attempt = begin_sign_in_attempt(context.request, self.user.email, "code")
        code: str = super().clean_code()
        take_back_attempt(attempt)
        return code


class CodeAgainForm(ReauthenticateForm):  # type: ignore[misc]
    """The proof that is asked for again of somebody who is signed in."""

    def clean_code(self) -> str:
        """The code, if it is right. Raises ValidationError."""
        attempt = begin_sign_in_attempt(context.request, self.user.email, "code")
        code: str = super().clean_code()
        take_back_attempt(attempt)
        return code
