"""Handle the forms at /approvals/<id> that do not decide: claim, assign, snooze, comment (R-APPR-9)."""

from collections.abc import Mapping
from datetime import datetime, time, timedelta
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import resolve_url
from django.utils import timezone

from approvals.actions.assignment import AssignmentChange, update_assignment
from approvals.core.assignment import WISHES, AssignmentAction
from approvals.core.errors import AlreadyDecided, DecisionInvalid, NotYours
from approvals.views.decision_form import row_id
from approvals.views.request_detail import TIMES, Notice, card_answer, go_on, shown_card, way_back, way_of
from tenancy.core.errors import InterlockError
from tenancy.db.change_cursor import mark_now
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.web.page_auth import PageRequest

DONE: Mapping[AssignmentAction, str] = {
    AssignmentAction.CLAIM: "Claimed by you. Others can still decide.",
    AssignmentAction.ASSIGN: "Reassigned.",
    AssignmentAction.RELEASE: "Released. Nobody has claimed it.",
    AssignmentAction.SNOOZE: "Snoozed. It comes back before it expires.",
    AssignmentAction.WAKE: "Back in your list.",
    AssignmentAction.COMMENT: "Comment added.",
}
MORNING = time(9)


def handle_here(request: PageRequest, request_id: UUID) -> HttpResponse:
    """Apply the form and redirect to the page that it came from.

    If the action is refused, render the card again with the reason and the typed text: 403, 409 or 422.
    """
    member = request.member
    with tenant_transaction(member.tenant.id):
        now = database_now()
    try:
        wish = _parse_assignment_form(request, now)
        update_assignment(member.tenant.id, request_id, member.principal, wish)
    except (NotYours, AlreadyDecided, DecisionInvalid) as error:
        return _render_refused_card(request, request_id, error)
    messages.success(request, DONE[wish.kind])
    where = way_back(request)
    if where.startswith("/approvals?") and wish.kind is not AssignmentAction.SNOOZE:
        where = f"{where}&open={request_id}"
    return go_on(request, where or resolve_url("approval", request_id))


def _parse_assignment_form(request: PageRequest, now: datetime) -> AssignmentChange:
    said = request.POST
    kind = next((one for one in WISHES if one.value == said.get("do")), None)
    if kind is None:
        raise DecisionInvalid(detail="choose what to do with it")
    return AssignmentChange(
        kind=kind, to=row_id(said.get("to", "")), until=_parse_snooze_end(said.get("until", ""), now),
        text=said.get("text", "").replace("\r\n", "\n"),
    )  # fmt: skip


def _parse_snooze_end(said: str, now: datetime) -> datetime | None:
    """Parse the end of a snooze: a number of minutes, or tomorrow morning in the reader's time zone."""
    if said == "morning":
        local = timezone.localtime(now) + timedelta(days=1)
        return timezone.make_aware(datetime.combine(local.date(), MORNING))
    fits = said.isdigit() and said in dict(TIMES)
    return now + timedelta(minutes=int(said)) if fits else None


def _render_refused_card(request: PageRequest, request_id: UUID, error: InterlockError) -> HttpResponse:
    status = 403 if isinstance(error, NotYours) else 409 if isinstance(error, AlreadyDecided) else 422
    with tenant_transaction(request.member.tenant.id):
        seq = str(mark_now())
        shown = shown_card(request.member, request_id, **way_of(request))
    notice = Notice(tone="error", title="Nothing was done.", text=str(error))
    context = {"shown": shown, "notice": notice, "seq": seq, "wished": request.POST}
    return card_answer(request, context, status=status)
