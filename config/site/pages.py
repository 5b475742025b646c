"""Pages outside the packages: refusals, preferences, the palette's search, the style guide."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import structlog
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_http_methods, require_safe

from config.site.command_palette import search_palette
from config.site.page_context import DENSITIES, THEMES, Preferences
from tenancy.core.errors import InterlockError
from tenancy.time_zones import ZONES, is_known_time_zone
from tenancy.web.page_auth import ZONE_COOKIE, PageRequest, redirect_back, require_member

YEAR = 365 * 86_400
SORRY = "Something went wrong on our side; it has been logged. What was accepted before is safe."
TITLES = {
    400: "That request could not be understood",
    403: "This is not open to you",
    404: "There is nothing here",
    409: "It has changed meanwhile",
    410: "It is too late for that",
    422: "That does not fit",
    429: "Too many attempts",
    500: "Something went wrong",
    503: "The store does not answer",
    507: "The store is full",
}
log = structlog.stdlib.get_logger(__name__)


def wants_page(request: HttpRequest) -> bool:
    """Return whether the request expects a page: its address is outside the API, and HTML is accepted."""
    return not request.path.startswith("/api/") and "text/html" in request.headers.get("Accept", "")


def render_refusal_page(request: HttpRequest, status: int, sentence: str, **more: Any) -> HttpResponse:
    """Render the page, or the fragment for htmx, that explains a refusal.

    From status 500 on, the page makes no database query.
    """
    template = (
        "pages/problem_bare.html" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "pages/problem.html"
    )
    if request.headers.get("HX-Request"):
        template = "pages/problem_fragment.html"
    title = TITLES.get(status, HTTPStatus(status).phrase)
    context = {"status": status, "title": title, "sentence": sentence, "tone": _choose_tone(status), **more}
    if template == "pages/problem_bare.html":
        context["preferences"] = Preferences.of(request)
    response = render(request, template, context, status=status)
    add_never_cache_headers(response)
    return response


def _choose_tone(status: int) -> str:
    return {401: "forbidden", 403: "forbidden", 404: "info", 409: "stale", 410: "stale"}.get(status, "error")


def render_error_page(request: HttpRequest, error: InterlockError) -> HttpResponse:
    """Render an `InterlockError` as a page.

    An error that no client can cause is logged and its content is not shown (R-SEC-7).
    """
    status = error.http_status
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("internal_refusal", code=error.code, data=error.data, exc_info=error)
        return render_refusal_page(request, status, SORRY)
    response = render_refusal_page(request, status, str(error), code=error.code, data=error.data)
    if "retry_after" in error.data:
        response.headers["Retry-After"] = str(error.data["retry_after"])
    return response


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Refuse a form without a valid token: sent from another site, or kept open over a sign-out."""
    log.warning("csrf.rejected", reason=reason, path=request.path)
    return render_refusal_page(
        request, 403, "The form was too old or did not come from this site. Nothing was changed.",
        code="csrf-failed", again=True,
    )  # fmt: skip


def too_many(request: HttpRequest, minutes: int = 1) -> HttpResponse:
    """Answer 429 on the sign-in pages, with the waiting time and without the account."""
    wait = "one minute" if minutes == 1 else f"{minutes} minutes"
    response = render_refusal_page(request, 429, f"Too many attempts from here. Wait {wait}, then try again.")
    response.headers["Retry-After"] = str(60 * minutes)
    return response


@require_http_methods(["GET", "HEAD", "POST"])
def show_preferences_page(request: HttpRequest) -> HttpResponse:
    """Render and save theme, density, single-key shortcuts and time zone for this browser.

    The page works without JavaScript.
    """
    if request.method != "POST":
        context = {
            "zones": ZONES,
            "zone": request.COOKIES.get(ZONE_COOKIE, ""),
            "preferences": Preferences.of(request),
        }
        return render(request, "pages/preferences.html", context)
    quiet = bool(request.POST.get("quiet"))
    response: HttpResponse = HttpResponse(status=204) if quiet else redirect_back(request, "preferences")
    chosen = {
        "theme": request.POST.get("theme") in THEMES,
        "density": request.POST.get("density") in DENSITIES,
        "keys": request.POST.get("keys") in {"on", "off"},
        ZONE_COOKIE: is_known_time_zone(request.POST.get(ZONE_COOKIE, "")),
    }
    for name, fits in chosen.items():
        if fits:
            _set_preference_cookie(request, response, name, request.POST[name])
    if the_browsers := request.POST.get(ZONE_COOKIE) == "":
        response.delete_cookie(ZONE_COOKIE, samesite="Lax")
    if not quiet and (the_browsers or any(chosen.values())):
        messages.success(request, "The preferences are saved.")
    return response


def _set_preference_cookie(request: HttpRequest, response: HttpResponse, name: str, value: str) -> None:
    """Set a cookie that scripts can read: theme.js and keys.js apply it before the next page."""
    response.set_cookie(
        name, quote(value, safe="/"), max_age=YEAR, samesite="Lax", secure=request.is_secure()
    )


@require_safe
@require_member()
def list_palette_results(request: PageRequest) -> HttpResponse:
    """Return the palette's results for `q`: [{text, detail, url}], ten at most; without `q` the own views."""
    return JsonResponse({"results": search_palette(request.member, request.GET.get("q", "")[:100])})


@require_safe
@require_member()
def show_styleguide_page(request: PageRequest) -> HttpResponse:
    """Render every component in every state (R-UI-11)."""
    from config.ui.styleguide_samples import build_styleguide_samples  # noqa: PLC0415 - nobody else needs them in memory

    return render(request, "pages/styleguide.html", build_styleguide_samples())
