"""GET and POST /change-requests: loosening changes that wait for a second person (R-TOOL-4, P4)."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from budgets.core.ceilings import Ceilings
from orchestrator.core.approval.errors import OwnProposal
from orchestrator.core.tools.tool_update import asked_change, diff_tool_specs, with_tool_change
from orchestrator.policies.actions.boundaries import BoundaryPublication
from orchestrator.policies.actions.dual_control import ChangeAuthor
from orchestrator.policies.queries.boundaries import boundary_document, newest_boundary, version_left
from orchestrator.tools.actions.change_requests import Agreed, agree_to_tool
from orchestrator.tools.actions.relaxation_proposals import drop_tool_proposal
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.queries.relaxation_proposals import (
    BOUNDARY,
    find_stale_reason,
    proposal_of,
    tool_proposals,
)
from orchestrator.tools.queries.tool_servers import PlacesNow
from orchestrator.tools.queries.tools import ToolNow, tool_now
from tenancy.core.errors import InterlockError, NotFound
from tenancy.core.relations import Actors
from tenancy.core.roles import Scope
from tenancy.core.sign_in.rules import Area
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.member_queries import names_of
from tenancy.people.relations import find_closeness_to
from tenancy.people.sign_in_rules import RulesNow
from tenancy.rest.api_helpers import uuid_or_none
from tenancy.web.page_auth import PageRequest, check_scopes, require_member

KINDS = {
    "change": "A change", "admit": "An admission", "declare": "A declaration", "web": "A wider list",
    "databases": "A wider list", "mail": "A change",
    "models": "A change", "places": "A wider list", "ceilings": "A change",
    "boundary": "A wider version", "sign_in": "A change",
}  # fmt: skip
LISTS = {
    "web": "The web list", "databases": "The list of databases", "mail": "The mail server",
    "models": "The list of models", "places": "The list of private places", "ceilings": "The ceilings",
    "sign_in": "The sign-in rules",
}  # fmt: skip
AREAS: dict[str, tuple[Area, ...]] = {
    "change": (Area.MONEY,), "ceilings": (Area.MONEY,), "models": (Area.MONEY,), "boundary": (Area.MONEY,),
    "sign_in": tuple(Area),
}  # fmt: skip
"""The areas to which a yes to what waits belongs, as the form belongs by which it was asked for."""


class RejectedDecision(NamedTuple):
    """A decision on a proposal that was not accepted, with the reason given and the fault."""

    proposal: UUID | None
    reason: str
    fault: str


def _list_step_up_areas(request: PageRequest, places: Mapping[str, Any]) -> tuple[Area, ...]:
    """Return the step-up areas of the proposal that is being approved; none for any other act."""
    if "agree" not in request.POST:
        return ()
    with tenant_transaction(request.member.tenant.id):
        try:
            row = proposal_of(uuid_or_none(request.POST.get("proposal", "")))
        except NotFound:
            return ()
    return AREAS.get(row.kind, ())


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(asks=_list_step_up_areas)
def show_change_requests_page(request: PageRequest) -> HttpResponse:
    """Render the open and the settled proposals. A POST approves, rejects or withdraws one."""
    check_scopes(request.member, Scope.ADMIN if request.method == "POST" else Scope.INSPECT)
    if request.method != "POST":
        return _render_change_requests_page(request)
    house, reason = request.member.tenant.id, request.POST.get("reason", "").strip()[:500]
    waiting = uuid_or_none(request.POST.get("proposal", ""))
    if not reason:
        return _render_change_requests_page(
            request,
            RejectedDecision(waiting, reason, "Say why: the reason stands in the audit log."),
            status=422,
        )
    try:
        if "agree" in request.POST:
            now = agree_to_tool(house, waiting, who=build_requester(request), reason=reason)
            messages.success(request, _format_approval_message(now))
        else:
            drop_tool_proposal(house, waiting, who=build_requester(request), reason=reason)
            messages.success(request, "It waits no longer; everything is as it was.")
    except NotFound:
        raise
    except OwnProposal as error:
        return _render_change_requests_page(
            request, RejectedDecision(waiting, reason, str(error)), status=403
        )
    except InterlockError as error:
        return _render_change_requests_page(
            request, RejectedDecision(waiting, reason, str(error)), status=409
        )
    return redirect("change-requests")


def _format_approval_message(now: Agreed) -> str:
    if isinstance(now, Ceilings):
        return "The ceilings hold from the next reservation on."
    if isinstance(now, BoundaryPublication):
        if now.version.retired_at is not None:
            return f"Version {now.version.version} of the boundary {now.version.slug} is retired."
        return f"The boundary {now.version.slug} is at version {now.version.version} now, for runs to come."
    if isinstance(now, ToolNow):
        return f"{now.spec.name} is at version {now.spec.version} now."
    if isinstance(now, RulesNow):
        return "The rules hold from everybody's next request on."
    name = LISTS["places" if isinstance(now, PlacesNow) else now.kind]
    return f"{name} is at version {now.version} now."


def build_requester(request: PageRequest) -> ChangeAuthor:
    """Build the requester: the acting principal and the person who is accountable for it."""
    return ChangeAuthor(principal=request.member.principal, owner=request.member.owner)


def redirect_to_change_requests(request: PageRequest) -> HttpResponse:
    """Redirect to the proposals page with a message that the change waits for a second person."""
    messages.info(
        request,
        "It guards less or reaches further than before, so it waits for a second administrator. "
        "Nothing is changed yet.",
    )
    return redirect("change-requests")


def _render_change_requests_page(
    request: PageRequest, word: RejectedDecision | None = None, *, status: int = 200
) -> HttpResponse:
    with tenant_transaction(request.member.tenant.id):
        waiting, settled = tool_proposals(), tool_proposals(waiting=False)
        late = None if word is None or word.proposal is None else proposal_of(word.proposal)
        rows_of = (*waiting, *settled, *([late] if late else []))
        names = names_of([one for row in rows_of for one in (row.by, row.settled_by)])
        rows = {
            "waiting": [_build_proposal_row(row, request) for row in waiting],
            "settled": [_build_proposal_row(row, request) for row in settled],
        }
    context = {
        **rows,
        "names": names,
        "word": word,
        "late": late,
        "may_admin": request.member.may(Scope.ADMIN),
    }
    return render(request, "tools/change_requests.html", context, status=status)


def _build_proposal_row(row: ToolProposal, request: PageRequest) -> dict[str, Any]:
    own = row.owner == request.member.owner
    shown = {
        "row": row,
        "kind": KINDS[row.kind],
        "own": own,
        "close": find_closeness_to(
            request.member.principal, request.member.owner, Actors((row.by,), (row.owner,))
        ),
        "body": row.body,
        "list": row.kind in LISTS or row.kind == "boundary",
    }
    return shown | _build_comparison(row, request.member.tenant.id) if row.status == "open" else shown


def _build_comparison(row: ToolProposal, house: UUID) -> dict[str, Any]:
    """Return what the proposal would change.

    `stale` is the reason if the proposal can no longer be approved.
    """
    found: dict[str, Any] = {"stale": find_stale_reason(house, row)}
    if row.kind == "change" and not found["stale"]:
        before = tool_now(house, row.tool).spec
        found["was"], found["is_now"] = diff_tool_specs(
            before, with_tool_change(before, asked_change(row.body["change"]))
        )
    elif row.kind == "boundary" and not found["stale"]:
        slug = row.tool.removeprefix(BOUNDARY)
        newest = newest_boundary(slug)
        found["was"] = boundary_document(newest) if newest is not None else {}
        left = version_left(slug) if "retire" in row.body else None
        found["is_now"] = boundary_document(left) if left is not None else row.body.get("document")
    return found
