"""URLs that pages without a WebSocket poll for changes (traces/views/event_polling.py)."""

from __future__ import annotations

from uuid import UUID

from django.http.response import HttpResponseBase
from django.urls import path
from django.views.decorators.http import require_safe

from config.live.feeds import INBOX, OVERVIEW, RUN, RUNS
from tenancy.core.roles import Scope
from tenancy.web.page_auth import PageRequest, mark_unattended, require_member
from traces.views.event_polling import poll_feed


@require_safe
@require_member(Scope.READ)
@mark_unattended
def poll_run_events(request: PageRequest, run_id: UUID) -> HttpResponseBase:
    """Poll changes of a run's page."""
    return poll_feed(request, RUN, run_id)


@require_safe
@require_member(Scope.READ)
@mark_unattended
def poll_run_list(request: PageRequest) -> HttpResponseBase:
    """Poll changes of the list of runs."""
    return poll_feed(request, RUNS, request.member.tenant.id)


@require_safe
@require_member(Scope.READ)
@mark_unattended
def poll_inbox(request: PageRequest) -> HttpResponseBase:
    """Poll changes of the inbox."""
    return poll_feed(request, INBOX, request.member.tenant.id)


@require_safe
@require_member(Scope.READ)
@mark_unattended
def poll_overview(request: PageRequest) -> HttpResponseBase:
    """Poll changes of the start page."""
    return poll_feed(request, OVERVIEW, request.member.tenant.id)


urlpatterns = [
    path("overview/changes.html", poll_overview, name="overview-poll"),
    path("runs/<uuid:run_id>/events.html", poll_run_events, name="run-poll"),
    path("runs/changes.html", poll_run_list, name="runs-poll"),
    path("approvals/changes.html", poll_inbox, name="inbox-poll"),
]
