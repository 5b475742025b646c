"""Revealing a sealed value by a form at /approvals/<id>: the card with the value, this once."""

from typing import Final
from uuid import UUID

from django.http import HttpResponse

from approvals.actions.reveal import reveal_sealed_value
from approvals.core.errors import AlreadyDecided, DecisionInvalid, NotYours
from approvals.views.request_detail import Notice, card_answer, shown_card, way_of
from tenancy.core.errors import InterlockError
from tenancy.db.change_cursor import mark_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.web.page_auth import PageRequest
from traces.core.errors import Unopenable

REVEAL: Final = "reveal"


def reveal_here(request: PageRequest, request_id: UUID) -> HttpResponse:
    """Show it and record that; the card with what stands in the way: 403, 409, 410, 422."""
    member, pointer = request.member, request.POST.get("pointer", "")
    try:
        value = reveal_sealed_value(member.tenant.id, request_id, member.principal, pointer)
    except (NotYours, AlreadyDecided, DecisionInvalid, Unopenable) as error:
        return _render_refused_card(request, request_id, error)
    answer = _render_card(request, request_id, 200, revealed={"pointer": pointer, "value": value})
    answer["Cache-Control"] = "no-store"
    return answer


def _render_refused_card(request: PageRequest, request_id: UUID, error: InterlockError) -> HttpResponse:
    status = {NotYours: 403, AlreadyDecided: 409, Unopenable: 410}.get(type(error), 422)
    notice = Notice(tone="error", title="Nothing was revealed.", text=str(error))
    return _render_card(request, request_id, status, notice=notice)


def _render_card(request: PageRequest, request_id: UUID, status: int, **more: object) -> HttpResponse:
    with tenant_transaction(request.member.tenant.id):
        seq = str(mark_now())
        shown = shown_card(request.member, request_id, **way_of(request))
    return card_answer(request, {"shown": shown, "seq": seq, **more}, status=status)
