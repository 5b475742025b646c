"""Where a page without a socket asks what is new (traces/views/event_polling.py)."""

from __future__ import annotations

from uuid import UUID

from django.http.response import HttpResponseBase
from django.urls import path
from django.views.decorators.http import require_safe

from config.live.feeds import INBOX, OVERVIEW, RUN, RUNS
from tenancy.core.roles import Scope
from tenancy.web.page_auth import PageRequest, page, unattended
from traces.views.event_polling import poll


@require_safe
@page(Scope.READ)
@unattended
def run(request: PageRequest, run_id: UUID) -> HttpResponseBase:
    """A run's page."""
    return poll(request, RUN, run_id)


@require_safe
@page(Scope.READ)
@unattended
def runs(request: PageRequest) -> HttpResponseBase:
    """The list of runs."""
    return poll(request, RUNS, request.member.tenant.id)


@require_safe
@page(Scope.READ)
@unattended
def inbox(request: PageRequest) -> HttpResponseBase:
    """The inbox."""
    return poll(request, INBOX, request.member.tenant.id)


@require_safe
@page(Scope.READ)
@unattended
def overview(request: PageRequest) -> HttpResponseBase:
    """The first page."""
    return poll(request, OVERVIEW, request.member.tenant.id)


urlpatterns = [
    path("overview/changes.html", overview, name="overview-poll"),
    path("runs/<uuid:run_id>/events.html", run, name="run-poll"),
    path("runs/changes.html", runs, name="runs-poll"),
    path("approvals/changes.html", inbox, name="inbox-poll"),
]
