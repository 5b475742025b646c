"""GET /runs and POST /runs/bulk (R-UI-2)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from orchestrator.console.views.fragments import KEPT
from orchestrator.console.views.run_labels import LABELS, WORDS
from orchestrator.console.views.saved_views import kept_by
from orchestrator.core.common.run_status import TERMINAL_STATUSES, Status, TerminalCode
from orchestrator.publishing.models import WorkflowVersion
from orchestrator.runs.actions import run_signals
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.run_list import CAP, VIEWS, Filters, filters_of, list_run_page, view_counts
from orchestrator.runs.queries.saved_views import views_of
from tenancy.core.errors import InterlockError
from tenancy.core.roles import Scope
from tenancy.db.change_cursor import mark_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import uuid_or_none
from tenancy.web.page_auth import PageRequest, check_scopes, redirect_unless_post, require_member

MOST: Final = 100
LONGEST_REASON: Final = 500


class SignalButton(NamedTuple):
    """An action that a person may request for a run.

    It has a function, a required scope, texts and the run states that allow it.
    """

    verb: Callable[..., Run]
    scope: Scope
    word: str
    explains: str
    states: tuple[Status, ...]


_LIVE = tuple(status for status in Status if status not in TERMINAL_STATUSES)
WISHES: Final = {
    "pause": SignalButton(
        run_signals.pause,
        Scope.OPERATE,
        "Pause",
        "Calls in progress finish and are recorded. Nothing new starts until someone resumes the run. "
        "Deadlines keep running.",
        tuple(status for status in _LIVE if status is not Status.PAUSED),
    ),
    "resume": SignalButton(
        run_signals.resume,
        Scope.OPERATE,
        "Resume",
        "The run continues where it was paused.",
        (Status.PAUSED,),
    ),
    "cancel": SignalButton(
        run_signals.cancel,
        Scope.SUBMIT,
        "Cancel",
        "Calls in progress finish and are recorded, then the run ends. What it has done stays done.",
        _LIVE,
    ),
}


class Pill(NamedTuple):
    """An active filter, and the address without it."""

    label: str
    value: str
    url: str


@require_safe
@require_member(Scope.READ)
def show_runs_page(request: PageRequest) -> HttpResponse:
    """Render the tenant's runs, newest first."""
    filters = filters_of(request.GET)
    if not request.GET and (opens := _opened_first(request)):
        return redirect(f"{reverse('runs')}?{opens}")
    cursor = request.GET.get("cursor", "")[:200]
    with tenant_transaction(request.member.tenant.id):
        # The mark is read before the rows: changes in between are sent again by the socket.
        mark = mark_now()
        try:
            found = list_run_page(filters, cursor)
        except ValueError:
            cursor = ""
            found = list_run_page(filters)
        counts = view_counts()
        own = kept_by(request.member.principal)
        named = any(one.view.query == filters.query for one in own)
        slugs = WorkflowVersion.objects.order_by("slug").values_list("slug", flat=True).distinct()
        context = {
            "page": found,
            "filters": filters,
            "cursor": cursor,
            "seq": str(mark),
            "view": KEPT if filters.active_filters or cursor else filters.view,
            "workflows": list(slugs),
            "views": [
                (name, WORDS[name], counts[name], _build_runs_url(Filters(view=name))) for name in VIEWS
            ],
            "own": own,
            "query": filters.query,
            "savable": not filters.plain and not named,
            "current": "" if named else filters.view,
            "everything": _build_runs_url(Filters()),
            "pills": _build_filter_pills(filters),
            "statuses": list(Status),
            "codes": list(TerminalCode),
            "following": _build_runs_url(filters, cursor=found.following) if found.following else "",
            "first": _build_runs_url(filters),
            "cap": CAP,
            "may_operate": request.member.may(Scope.OPERATE),
            "may_submit": request.member.may(Scope.SUBMIT),
        }
        return render(request, "orchestrator/runs.html", context)


def _build_runs_url(filters: Filters, *, without: str = "", **more: str) -> str:
    # The bare address may open a saved view, so the view of all runs is named explicitly.
    return f"{reverse('runs')}?{filters.query_without(without, **more) or 'view=all'}"


def _opened_first(request: PageRequest) -> str:
    with tenant_transaction(request.member.tenant.id):
        found = views_of(request.member.principal).filter(first=True).values_list("query", flat=True).first()
    return found or ""


def _build_filter_pills(filters: Filters) -> list[Pill]:
    given = filters.active_filters
    return [Pill(LABELS[name], given[name], _build_runs_url(filters, without=name)) for name in given]


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkOutcome:
    """The outcome of a bulk action for one run."""

    run: Run
    done: bool
    said: str


@redirect_unless_post("runs")
@require_member(Scope.READ)
def submit_bulk_run_action(request: PageRequest) -> HttpResponse:
    """Preview a bulk action on the chosen runs, or apply it.

    A confirmed action with a reason is applied to each run separately.
    """
    name = request.POST.get("wish", "")
    wish = WISHES.get(name, WISHES["pause"])
    check_scopes(request.member, wish.scope)
    ids = [found for text in request.POST.getlist("run")[:MOST] if (found := uuid_or_none(text)) is not None]
    with tenant_transaction(request.member.tenant.id):
        chosen = list(Run.objects.filter(id__in=ids).order_by("-created_at", "-id"))
    reason = request.POST.get("reason", "").strip()[:LONGEST_REASON]
    context: dict[str, Any] = {
        "wish": wish,
        "name": name if name in WISHES else "pause",
        "fit": [run for run in chosen if Status(run.status) in wish.states],
        "left": [run for run in chosen if Status(run.status) not in wish.states],
        "reason": reason,
    }
    if "sure" not in request.POST or not chosen:
        return render(request, "orchestrator/bulk.html", context)
    if not reason:
        return render(request, "orchestrator/bulk.html", context | {"fault": "Say why."}, status=422)
    context["results"] = [_apply_run_action(request, wish, run, reason) for run in context["fit"]]
    return render(request, "orchestrator/bulk.html", context)


def _apply_run_action(request: PageRequest, wish: SignalButton, run: Run, reason: str) -> BulkOutcome:
    try:
        wish.verb(request.member.tenant.id, run.id, by=request.member.principal, reason=reason)
    except InterlockError as error:
        return BulkOutcome(run=run, done=False, said=str(error))
    return BulkOutcome(run=run, done=True, said="asked")
