"""Where every address leads. Each app's `api.urls` hangs under `/api/v1/`, its `views.urls` under `/`."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from django.urls import URLPattern, URLResolver, include, path

from config import api_start, health, metrics, pages
from config.celery import FLOORS
from config.document import Document
from tenancy.pages import switch


def _has(module: str) -> bool:
    package = module.rpartition(".")[0]
    if not find_spec(package) or not hasattr(import_module(package), "__path__"):
        return False
    return find_spec(module) is not None


def api_patterns() -> list[URLPattern | URLResolver]:
    """The API of every floor that has one."""
    return [path("", include(f"{floor}.api.urls")) for floor in FLOORS if _has(f"{floor}.api.urls")]


def page_patterns() -> list[URLPattern | URLResolver]:
    """The pages of every floor that has some."""
    return [path("", include(f"{floor}.views.urls")) for floor in FLOORS if _has(f"{floor}.views.urls")]


urlpatterns: list[URLPattern | URLResolver] = [
    path("livez", health.livez, name="livez"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("api/schema", Document.as_view(), name="schema"),
    path("api/v1", api_start.show_api_start, name="api-start"),
    path("api/v1/", include(api_patterns())),
    path("account/", include("config.account_urls")),
    path("preferences", pages.preferences, name="preferences"),
    path("palette", pages.palette, name="palette"),
    path("styleguide", pages.styleguide, name="styleguide"),
    path("tenant/switch", switch, name="tenant-switch"),
    path("", include("config.polling")),
    *page_patterns(),
]
handler404 = "config.problems.not_found"
handler403 = "config.problems.forbidden"
handler400 = "config.problems.bad_request"
handler500 = "config.problems.server_error"
handler429 = "config.pages.too_many"
