"""GET and POST /runs/views and POST /runs/views/<id>: a user's saved views of the run list (R-UI-2)."""

from dataclasses import dataclass
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from orchestrator.console.views.run_labels import sentence_of
from orchestrator.core.common.errors import NameTaken
from orchestrator.runs.actions.saved_views import (
    LONGEST_NAME,
    LONGEST_QUERY,
    open_first,
    remove_view,
    rename_view,
    save_view,
)
from orchestrator.runs.models.saved_view import SavedView
from orchestrator.runs.queries.run_list import Filters, filters_of
from orchestrator.runs.queries.saved_views import views_of
from tenancy.core.errors import InvalidInput
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.web.page_auth import PageRequest, redirect_unless_post, require_member


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedView:
    """A saved view with its address and a sentence about its filters."""

    view: SavedView
    url: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedInput:
    """Rejected input: the name as typed, the fault, and the view concerned (None for a new one)."""

    name: str
    fault: str
    view: UUID | None = None
    first: bool = False


def kept_by(principal: UUID) -> list[LinkedView]:
    """List a person's saved views. Runs in the tenant's context."""
    return [
        LinkedView(
            view=view, url=f"{reverse('runs')}?{view.query}", says=sentence_of(_parse_saved_query(view.query))
        )
        for view in views_of(principal)
    ]


def _parse_saved_query(query: str) -> Filters:
    # The limit exceeds the length that can be stored. Truncation at that length would silently drop a filter.
    return filters_of(QueryDict(query[: 10 * LONGEST_QUERY]).dict())


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.READ)
def saved_views(request: PageRequest) -> HttpResponse:
    """Render the user's saved views and a form for the filters of the address. A POST saves them."""
    if request.method != "POST":
        return _render_saved_views_page(request, filters_of(request.GET))
    filters = _parse_saved_query(request.POST.get("query", ""))
    name, first = request.POST.get("name", ""), "first" in request.POST
    try:
        made = save_view(
            request.member.tenant.id, filters, name=name, by=request.member.principal, first=first
        )
    except (InvalidInput, NameTaken) as error:
        return _render_saved_views_page(
            request, filters, RejectedInput(name=name[:200], fault=_format_refusal(error), first=first)
        )
    messages.success(request, "The view is kept.")
    return redirect(f"{reverse('runs')}?{made.query}")


@redirect_unless_post("runs-views")
@require_member(Scope.READ)
def saved_view(request: PageRequest, view_id: UUID) -> HttpResponse:
    """Rename a view, set or unset it as the default, or remove it."""
    house, by, act = request.member.tenant.id, request.member.principal, request.POST.get("act", "")
    if act == "remove":
        remove_view(house, view_id, by=by)
        messages.success(request, "The view is removed. The runs stay.")
    elif act in ("first", "last"):
        open_first(house, view_id, first=act == "first", by=by)
        messages.success(request, "Runs opens with it." if act == "first" else "Runs opens with all runs.")
    else:
        name = request.POST.get("name", "")
        try:
            rename_view(house, view_id, name=name, by=by)
        except (InvalidInput, NameTaken) as error:
            return _render_saved_views_page(
                request, Filters(), RejectedInput(name=name[:200], fault=_format_refusal(error), view=view_id)
            )
        messages.success(request, "The view is renamed.")
    return redirect("runs-views")


def _render_saved_views_page(
    request: PageRequest, filters: Filters, refused: RejectedInput | None = None
) -> HttpResponse:
    with tenant_transaction(request.member.tenant.id):
        rows = kept_by(request.member.principal)
    context = {
        "rows": rows,
        "query": "" if filters.plain else filters.query,
        "says": sentence_of(filters),
        "refused": refused,
        "longest": LONGEST_NAME,
    }
    return render(request, "orchestrator/saved_views.html", context, status=422 if refused else 200)


def _format_refusal(error: InvalidInput | NameTaken) -> str:
    if isinstance(error, NameTaken):
        return "You keep another view under this name."
    return str(error.data["errors"][0]["detail"])
