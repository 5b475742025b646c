"""Of the library's addresses those that mean something here: nobody signs up, and nothing is sent by mail. A
link that sets a first password is shown to the administrator who adds a person (tenancy.views.people)."""

from __future__ import annotations

from allauth.account import urls as account
from django.urls import URLPattern, URLResolver, include, path

from config.auth import oidc
from tenancy.views import sessions

KEPT = frozenset(
    {
        "account_login", "account_logout", "account_inactive", "account_signup", "account_reauthenticate",
        "account_change_password", "account_set_password", "account_reset_password_from_key",
        "account_reset_password_from_key_done",
    }
)  # fmt: skip

urlpatterns: list[URLPattern | URLResolver] = [
    *(pattern for pattern in account.urlpatterns if getattr(pattern, "name", None) in KEPT),
    path("2fa/", include("allauth.mfa.urls")),
    path("sessions/", sessions.show_sessions_page, name="sessions"),
    path("sessions/<uuid:session_id>/end", sessions.end_own_session, name="session-end"),
    path("devices/<uuid:device_id>/forget", sessions.forget_own_device, name="device-forget"),
    path("sso/", include("allauth.socialaccount.urls")),
    path("oidc/<str:provider_id>/login/", oidc.redirect_to_provider, name="openid_connect_login"),
    path("oidc/<str:provider_id>/login/callback/", oidc.come_back, name="openid_connect_callback"),
]
