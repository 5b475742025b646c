"""/approvals/bulk: decide several low-risk requests for one tool in one step (R-APPR-9)."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from approvals.actions.bulk import Outcome, decide_together
from approvals.core.bulk import MOST, first_group
from approvals.core.errors import DecisionInvalid, RequestNotFound
from approvals.core.lifecycle import DecisionKind
from approvals.models import Request
from approvals.queries.bulk import ComparisonTable, build_bulk_candidate, build_bulk_comparison
from approvals.queries.inbox import filters_of, inbox_page
from approvals.queries.people import decider_of
from approvals.views.decision_form import row_id
from approvals.views.request_detail import Notice
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.web.page_auth import PageRequest, require_member


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.READ)
def side_by_side(request: PageRequest) -> HttpResponse:
    """Render the table, or apply one decision to all of its requests.

    The answer is 200 even if single decisions did not count; the page names each of those. The answer is 422
    if the requests may not be decided together or a reason is missing.
    """
    if request.method == "POST":
        return _submit_bulk_decision(request)
    with tenant_transaction(request.member.tenant.id):
        return _render_bulk_page(
            request, build_bulk_comparison(_list_chosen_requests(request), decider_of(request.member))
        )


def _list_chosen_requests(request: PageRequest) -> list[Request]:
    """List the requests that were picked.

    If none was picked, list the first of the reader's own requests that match the filters and may be decided
    together, with those that may join it.

    Raises: RequestNotFound.
    """
    picked = [row_id(text) for text in request.GET.getlist("one")]
    if not picked:
        rows = inbox_page("mine", decider_of(request.member), filters_of(request.GET)).rows
        found = [row.request for row in rows if row.together]
        return [found[place] for place in first_group([build_bulk_candidate(request) for request in found])]
    return _in_order([one for one in picked if one is not None])


def _in_order(ids: Sequence[UUID]) -> list[Request]:
    wanted = list(dict.fromkeys(ids))[: MOST + 1]
    found = Request.objects.in_bulk(wanted)
    if len(found) < len(wanted):
        raise RequestNotFound
    return [found[one] for one in wanted]


def _render_bulk_page(
    request: PageRequest, table: ComparisonTable, *, status: int = 200, **more: Any
) -> HttpResponse:
    context = {"table": table, "most": MOST, **more}
    return render(request, "approvals/bulk.html", context, status=status)


def _submit_bulk_decision(request: PageRequest) -> HttpResponse:
    member, said = request.member, request.POST
    shown = [_parse_request_and_digest(text) for text in said.getlist("one")[: MOST + 1]]
    kind = next((one for one in DecisionKind if one.value == said.get("decision")), None)
    reason = said.get("reason", "").replace("\r\n", "\n")
    try:
        if kind is None:
            raise DecisionInvalid(detail="choose what to decide")
        if kind is DecisionKind.REJECT and not reason.strip():
            raise DecisionInvalid(detail="a reason is missing, which the runs and the agents are told")
        done = decide_together(member.tenant.id, member.principal, shown, kind, reason)
    except DecisionInvalid as error:
        notice = Notice(tone="error", title="Nothing was decided.", text=str(error))
        return _render_bulk_table_again(
            request, [one for one, _ in shown], status=422, notice=notice, reason=reason
        )
    return _render_bulk_table_again(
        request, [one for one, _ in shown], done=_map_error_texts(done), kind=kind.value
    )


def _render_bulk_table_again(
    request: PageRequest, ids: Sequence[UUID], *, status: int = 200, **more: Any
) -> HttpResponse:
    with tenant_transaction(request.member.tenant.id):
        table = build_bulk_comparison(_in_order(ids), decider_of(request.member))
        return _render_bulk_page(request, table, status=status, **more)


def _parse_request_and_digest(text: str) -> tuple[UUID, str]:
    """Parse a request's id and the digest of its packet as it was shown.

    Raises: RequestNotFound.
    """
    key, _, digest = text.partition(":")
    found = row_id(key)
    if found is None:
        raise RequestNotFound
    return found, digest


def _map_error_texts(done: Sequence[Outcome]) -> dict[UUID, str]:
    """Map each request to the text of its error, "" if the decision counted."""
    return {one.request_id: str(one.error) if one.error is not None else "" for one in done}
