"""Of the library's addresses those that mean something here: nobody signs up, and nobody's password is sent
by mail."""

from __future__ import annotations

from allauth.account import urls as account
from django.urls import URLPattern, URLResolver, include, path

KEPT = frozenset(
    {
        "account_login", "account_logout", "account_inactive", "account_signup", "account_reauthenticate",
        "account_change_password", "account_set_password",
    }
)  # fmt: skip

urlpatterns: list[URLPattern | URLResolver] = [
    *(pattern for pattern in account.urlpatterns if getattr(pattern, "name", None) in KEPT),
    path("2fa/", include("allauth.mfa.urls")),
    path("sessions/", include("allauth.usersessions.urls")),
    path("sso/", include("allauth.socialaccount.urls")),
    path("", include("allauth.socialaccount.providers.openid_connect.urls")),
]
