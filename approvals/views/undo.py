"""Undo a deferred approval by a form at /approvals/<id>, and list those to offer (docs/console.md)."""

from typing import Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import resolve_url

from approvals.actions.undo import undo_deferred_approval
from approvals.core.errors import NothingToUndo, NotYours
from approvals.queries.inbox import Row, rows_of
from approvals.queries.people import Stands, decider_of
from approvals.queries.undo import may_undo, offered_to
from approvals.views.decision_form import row_id
from approvals.views.request_detail import Notice, card_answer, go_on, shown_card, way_back, way_of
from tenancy.core.errors import InterlockError
from tenancy.db.change_cursor import mark_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.web.page_auth import PageRequest

UNDO: Final = "undo"


def undo_here(request: PageRequest, request_id: UUID) -> HttpResponse:
    """Undo the approval and open the request again on the page that the form came from.

    If that is refused, render the card with the reason: 403 for another person's approval, 409 if it is too
    late.
    """
    member = request.member
    try:
        meant = row_id(request.POST.get("deferral", ""))
        undo_deferred_approval(member.tenant.id, request_id, member.principal, deferral=meant)
    except (NotYours, NothingToUndo) as error:
        return _render_refused_card(request, request_id, error)
    messages.success(request, "Taken back. The request waits as before.")
    where = way_back(request)
    if where.startswith("/approvals?"):
        where = f"{where}&open={request_id}"
    return go_on(request, where or resolve_url("approval", request_id))


def _render_refused_card(request: PageRequest, request_id: UUID, error: InterlockError) -> HttpResponse:
    with tenant_transaction(request.member.tenant.id):
        seq = str(mark_now())
        shown = shown_card(request.member, request_id, **way_of(request))
    if isinstance(error, NotYours):
        status, text = 403, "Only the approver or an administrator can undo it."
    else:
        status, text = 409, "It can no longer be undone. The card below shows how the request stands."
    notice = Notice(tone="stale", title="Nothing was undone.", text=text)
    return card_answer(request, {"shown": shown, "notice": notice, "seq": seq}, status=status)


def list_undoable_requests(who: Stands) -> tuple[Row, ...]:
    """List the requests whose approval this person can undo now, the latest first. Call in the tenant's
    context.
    """
    found = offered_to(who.owner)
    rows = rows_of(found, decider_of(who)) if found else ()
    return tuple(row for row in rows if row.deferred is not None and may_undo(who, row.deferred))
