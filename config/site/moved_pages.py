"""Page addresses of the release before, each redirected to the page's address of today for one release."""

from __future__ import annotations

from typing import Final

from django.urls import URLPattern, path
from django.views.generic import RedirectView

MOVED: Final = {
    "approvals/together": "/approvals/bulk",
    "outside": "/destinations",
    "runs/<uuid:run_id>/ask": "/runs/%(run_id)s/actions",
    "tool-proposals": "/change-requests",
    "tool-servers": "/mcp-servers",
    "tool-servers/<str:server>": "/mcp-servers/%(server)s",
}
# A form is never sent on: what it did was said at another address.
urlpatterns: list[URLPattern] = [
    path(old, RedirectView.as_view(url=new, query_string=True, http_method_names=["get", "head"]))
    for old, new in MOVED.items()
]
