"""URL configuration: the API of each app under `/api/v1/`, its pages under `/`."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from config.api import root_view
from config.api.schema_view import Document
from config.observability import health, metrics
from config.site import pages
from tenancy.web.page_auth import submit_tenant_switch

urlpatterns: list[URLPattern | URLResolver] = [
    path("livez", health.livez, name="livez"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.export_metrics, name="metrics"),
    path("api/schema", Document.as_view(), name="schema"),
    path("api/v1", root_view.show_api_start, name="api-start"),
    *(
        path("api/v1/", include(f"{app}.api.urls"))
        for app in ("tenancy", "budgets", "approvals", "orchestrator")
    ),
    path("account/", include("config.auth.account_urls")),
    path("preferences", pages.show_preferences_page, name="preferences"),
    path("palette", pages.list_palette_results, name="palette"),
    path("styleguide", pages.show_styleguide_page, name="styleguide"),
    path("tenant/switch", submit_tenant_switch, name="tenant-switch"),
    path("", include("config.live.event_polling")),
    path("", include("tenancy.views.urls")),
    path("", include("budgets.views.urls")),
    path("", include("approvals.views.urls")),
    path("", include("orchestrator.console.urls")),
]
handler404 = "config.api.problems.not_found"
handler403 = "config.api.problems.forbidden"
handler400 = "config.api.problems.bad_request"
handler500 = "config.api.problems.server_error"
handler429 = "config.site.pages.too_many"
