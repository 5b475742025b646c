"""The address `/api/v1` itself."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

START = {
    "document": "/api/schema",
    "authorization": (
        "Every request has the header Authorization: Bearer ilk_…; an administrator makes a key on the page "
        "API keys (/tenant/keys), or by manage.py key create."
    ),
    "links": {
        "tasks": "/api/v1/tasks",
        "runs": "/api/v1/runs",
        "approvals": "/api/v1/approvals",
        "workflows": "/api/v1/workflows",
        "tools": "/api/v1/tools",
        "keys": "/api/v1/keys",
    },
}


@require_safe
def show_api_start(_request: HttpRequest) -> JsonResponse:
    """Say where the OpenAPI document is, how a request is authorized, and where to begin. It takes no key."""
    return JsonResponse(START, json_dumps_params={"ensure_ascii": False})
