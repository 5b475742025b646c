"""URL configuration. Each app's `api.urls` is included under `/api/v1/`, its `views.urls` under `/`."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from django.urls import URLPattern, URLResolver, include, path

from config.api import root_view
from config.api.schema_view import Document
from config.celery import FLOORS
from config.observability import health, metrics
from config.site import pages
from tenancy.web.page_auth import submit_tenant_switch


def _has_module(module: str) -> bool:
    package = module.rpartition(".")[0]
    if not find_spec(package) or not hasattr(import_module(package), "__path__"):
        return False
    return find_spec(module) is not None


def api_patterns() -> list[URLPattern | URLResolver]:
    """Include the API of every package that has one."""
    return [path("", include(f"{floor}.api.urls")) for floor in FLOORS if _has_module(f"{floor}.api.urls")]


def page_patterns() -> list[URLPattern | URLResolver]:
    """Include the pages of every package that has some."""
    return [
        path("", include(f"{floor}.views.urls")) for floor in FLOORS if _has_module(f"{floor}.views.urls")
    ]


urlpatterns: list[URLPattern | URLResolver] = [
    path("livez", health.livez, name="livez"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.export_metrics, name="metrics"),
    path("api/schema", Document.as_view(), name="schema"),
    path("api/v1", root_view.show_api_start, name="api-start"),
    path("api/v1/", include(api_patterns())),
    path("account/", include("config.auth.account_urls")),
    path("preferences", pages.show_preferences_page, name="preferences"),
    path("palette", pages.list_palette_results, name="palette"),
    path("styleguide", pages.show_styleguide_page, name="styleguide"),
    path("tenant/switch", submit_tenant_switch, name="tenant-switch"),
    path("", include("config.live.event_polling")),
    *page_patterns(),
]
handler404 = "config.api.problems.not_found"
handler403 = "config.api.problems.forbidden"
handler400 = "config.api.problems.bad_request"
handler500 = "config.api.problems.server_error"
handler429 = "config.site.pages.too_many"
