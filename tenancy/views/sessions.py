"""GET /account/sessions/; ending one's own sessions and forgetting one's own browsers (R-SEC-11)."""

from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_http_methods, require_POST

from tenancy.actions.sessions import end_other_sessions, end_session, forget_device
from tenancy.core.errors import NotFound
from tenancy.models import BrowserSession, Person
from tenancy.web.page_auth import respond_with_problem
from tenancy.web.tenant_sessions import own_devices, own_failures, own_sessions


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def show_sessions_page(request: HttpRequest) -> HttpResponse:
    """Show one's own sessions, browsers and failed sign-ins. A POST ends all sessions except this one."""
    person, current = _get_signed_in_person(request), _get_current_session_id(request)
    if request.method == "POST":
        ended = end_other_sessions(person, current)
        messages.success(request, f"{ended} other session{'' if ended == 1 else 's'} ended.")
        return redirect("sessions")
    context = {
        "sessions": own_sessions(person, current),
        "devices": own_devices(person),
        "failures": own_failures(person),
        "hours": settings.SESSION_COOKIE_AGE // 3600,
        "minutes": settings.INTERLOCK_IDLE_SECONDS // 60,
    }
    response = render(request, "account/sessions.html", context)
    add_never_cache_headers(response)
    return response


@require_POST
@login_required
def end_own_session(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """End one of one's own sessions; ending the current one is a sign-out."""
    if session_id == _get_current_session_id(request):
        logout(request)
        return redirect("account_login")
    try:
        end_session(_get_signed_in_person(request), session_id)
    except NotFound as error:
        return respond_with_problem(request, error)
    messages.success(request, "The session is ended.")
    return redirect("sessions")


@require_POST
@login_required
def forget_own_device(request: HttpRequest, device_id: UUID) -> HttpResponse:
    """Forget one of one's own browsers."""
    try:
        forget_device(_get_signed_in_person(request), device_id)
    except NotFound as error:
        return respond_with_problem(request, error)
    messages.success(request, "The browser is forgotten. It is signed in still, where it was.")
    return redirect("sessions")


def _get_signed_in_person(request: HttpRequest) -> Person:
    person = request.user
    assert isinstance(person, Person)
    return person


def _get_current_session_id(request: HttpRequest) -> UUID | None:
    row: BrowserSession | None = getattr(request.session, "row", None)
    return None if row is None else row.id
