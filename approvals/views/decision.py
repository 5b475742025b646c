"""/approvals/<id>: one request on its own page, and a decision on it by a form (R-APPR-3, R-UI-4).

A refused decision is answered at the same address, with the current card and the typed text: the whole page
without script, the card alone for a page that replaces the card in place.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import render, resolve_url
from django.views.decorators.http import require_http_methods

from approvals.actions import DecisionInput, decide_request
from approvals.core.errors import (
    AlreadyDecided,
    DecisionInvalid,
    Expired,
    NotYours,
    PacketChanged,
    YesStands,
)
from approvals.core.lifecycle import DecisionKind
from approvals.core.policy import Rule
from approvals.models import Request
from approvals.queries import decisions_of
from approvals.queries.edits import missing_for
from approvals.queries.request_detail import Card
from approvals.views.assignment import handle_here
from approvals.views.decision_form import (
    FormFaulty,
    NotReviewed,
    NotSaid,
    agreed_edit,
    edit_of,
    row_id,
    word_of,
)
from approvals.views.request_detail import (
    Notice,
    Preview,
    build_edit_preview,
    card_answer,
    go_on,
    shown_card,
    way_back,
    way_of,
)
from approvals.views.reveal import REVEAL, reveal_here
from approvals.views.undo import UNDO, undo_here
from tenancy.core.errors import InterlockError
from tenancy.core.roles import Scope
from tenancy.core.sign_in.rules import Area
from tenancy.db.change_cursor import mark_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.web.page_auth import PageRequest, redirect_unless_post, require_member

SAID: Mapping[DecisionKind, str] = {
    DecisionKind.APPROVE: "Approved.",
    DecisionKind.EDIT: "Approved with your changes.",
    DecisionKind.REJECT: "Rejected; the run is told your reason.",
    DecisionKind.REVISE: "Sent back; the agent sees your words and proposes again.",
    DecisionKind.ANSWER: "Answered; the run goes on.",
    DecisionKind.HAPPENED: "Noted: it happened.",
    DecisionKind.NOT_HAPPENED: "Noted: it did not happen.",
    DecisionKind.CANCEL: "Noted: the run is cancelled.",
    DecisionKind.EXTEND: "Budget extended; the run goes on.",
}
AGAIN = Notice(
    tone="stale", title="Look again.", text="The page was old; this is how it stands. Nothing was decided."
)
HARMLESS = ("review", *(one.value for one in (DecisionKind.REJECT, DecisionKind.REVISE, DecisionKind.CANCEL)))
MOVES_MONEY = "destructive"
PANELS = {"edit": "edit", "review": "edit", "reject": "reject", "revise": "revise", "cancel": "cancel"}


def _list_change_areas(request: PageRequest, places: Mapping[str, Any]) -> tuple[Area, ...]:
    """Return the areas that a submitted decision changes.

    A decision that may move money is a change of money: anything but a rejection, for a request that states
    an amount, is of the risk class that moves money, or asks for more budget.
    """
    if "do" in request.POST or request.POST.get("decision") in HARMLESS:
        return ()
    with tenant_transaction(request.member.tenant.id):
        row = Request.objects.filter(id=places["request_id"]).first()
    moves = row is not None and (row.has_amount or row.risk == MOVES_MONEY or row.kind == "budget")
    return (Area.MONEY,) if moves else ()


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.READ, asks=_list_change_areas)
def show_approval_page(request: PageRequest, request_id: UUID) -> HttpResponse:
    """Render the request, or apply a decision on it and redirect to the next request.

    A refused decision renders the card again with the reason: 403 not the reader's to decide, 409 already
    decided or changed, 410 too late, 422 a decision that does not fit. Actions other than deciding (`do`)
    arrive here too.
    """
    if request.method != "POST":
        return _render_card_page(request, request_id)
    if request.POST.get("do") == UNDO:
        return undo_here(request, request_id)
    if request.POST.get("do") == REVEAL:
        return reveal_here(request, request_id)
    return handle_here(request, request_id) if "do" in request.POST else _submit_decision(request, request_id)


def _render_card_page(request: PageRequest, request_id: UUID) -> HttpResponse:
    with tenant_transaction(request.member.tenant.id):
        seq = str(mark_now())
        way = way_of(request)
        way["back"] = way["back"] or resolve_url("approval", request_id)
        shown = shown_card(request.member, request_id, **way)
    notice = AGAIN if "again" in request.GET else None
    return card_answer(request, {"shown": shown, "seq": seq, "notice": notice})


def _submit_decision(request: PageRequest, request_id: UUID) -> HttpResponse:
    member, said = request.member, request.POST
    with tenant_transaction(member.tenant.id):
        card = shown_card(member, request_id).card
    if said.get("decision") == "review":
        return _render_edit_review(request, card)
    try:
        word = word_of(card, said) if card.decidable else _in_vain(card)
        settled = decide_request(member.tenant.id, request_id, member.principal, word)
    except NotReviewed:
        return _render_edit_review(request, card)
    except (NotYours, AlreadyDecided, YesStands, PacketChanged, Expired, DecisionInvalid) as error:
        return _render_refused_card(request, request_id, error)
    # A deferred approval announces itself where it can be undone.
    if settled.kept is None:
        messages.success(request, _format_decision_message(settled, word))
    return go_on(request, _build_next_url(request, request_id))


def _in_vain(card: Card) -> DecisionInput:
    """Build a decision that cannot count, so that the verb gives the reason.

    The decision carries no digest of a shown packet, so it decides nothing whatever has changed since.

    Raises: AlreadyDecided for a person's second decision.
    """
    if card.row.is_open and card.row.voted:
        raise AlreadyDecided(status="decided by you")
    return DecisionInput(kind=card.allowed_decisions[0], packet_digest="")


@redirect_unless_post("approval", "request_id")
@require_member(Scope.READ)
def show_edit_preview(request: PageRequest, request_id: UUID) -> HttpResponse:
    """Render what an edit would change, as it is typed: a fragment, or the whole page without script."""
    with tenant_transaction(request.member.tenant.id):
        card = shown_card(request.member, request_id).card
    return _render_edit_review(request, card)


def _render_edit_review(request: PageRequest, card: Card) -> HttpResponse:
    """Render the difference with the button that approves exactly this difference."""
    said = request.POST
    small = said.get("decision") is None and request.headers.get("HX-Request") is not None
    with tenant_transaction(request.member.tenant.id):
        seq = str(mark_now())
        try:
            found = agreed_edit(card, said) or edit_of(card, said)
        except DecisionInvalid as error:
            if not small:
                return _render_refused_card(request, card.request.id, error)
            return render(request, "approvals/_preview.html", {"faulty": _faults_of(error)})
        shown = shown_card(
            request.member, card.request.id, said=said, preview=build_edit_preview(card, found), panel="edit",
            **way_of(request),
        )  # fmt: skip
    if small:
        return render(request, "approvals/_preview.html", {"shown": shown, "preview": shown.preview})
    return card_answer(request, {"shown": shown, "seq": seq})


def _render_refused_card(request: PageRequest, request_id: UUID, error: InterlockError) -> HttpResponse:
    """Render the current card with the reason of the refusal."""
    said = request.POST
    with tenant_transaction(request.member.tenant.id):
        seq = str(mark_now())
        shown = shown_card(
            request.member, request_id, said=said, faults=_map_typing_faults(error),
            form_faults=error.read.faults if isinstance(error, FormFaulty) else _at_fields(error),
            **way_of(request),
        )  # fmt: skip
        if shown.agreed_edit is None:
            panel, preview = PANELS.get(said.get("decision", ""), ""), _preview_again(shown.card, said)
            shown = replace(shown, panel=panel, preview=preview)
    notice = _build_error_notice(error, shown.card)
    context = {"shown": shown, "notice": notice, "seq": seq}
    return card_answer(request, context, status=error.http_status)


def _preview_again(card: Card, said: Mapping[str, Any]) -> Preview | None:
    """Build the difference shown below the edit again, including the field being typed into.

    None for another kind of decision, for a card that cannot be decided, and if the values are invalid.
    """
    if said.get("decision") != DecisionKind.EDIT or not card.decidable:
        return None
    try:
        return build_edit_preview(card, edit_of(card, said))
    except DecisionInvalid:
        return None


def _build_error_notice(error: InterlockError, card: Card) -> Notice:
    match error:
        case NotYours():
            return Notice(tone="forbidden", title="This is not yours to decide.", text=_why_not(error))
        case AlreadyDecided():
            return _build_already_decided_notice(error, card)
        case YesStands():
            name = error.data["name"]
            text = "Other decisions are blocked until the undo window closes; the card says when."
            return Notice(tone="stale", title=f"{name} has already approved this.", text=text)
        case PacketChanged():
            text = "What is asked changed after you opened it. Nothing was decided; the changes are marked."
            return Notice(tone="stale", title="Look again.", text=text)
        case Expired():
            text = "Nothing was decided. The run was told that nobody answered in time."
            return Notice(tone="stale", title="You are too late: the request expired.", text=text)
    return Notice(tone="error", title="Nothing was decided yet.", text=str(error))


def _build_already_decided_notice(error: AlreadyDecided, card: Card) -> Notice:
    if card.row.voted and card.row.is_open:
        text = "Your decision is recorded; another person must agree."
        return Notice(tone="info", title="You have decided this before.", text=text)
    title = f"The request was already {error.data['status']}."
    return Notice(
        tone="stale",
        title=title,
        text="Your decision was not counted. The card below shows who decided and when.",
    )


def _why_not(error: NotYours) -> str:
    more = {
        Rule.OWN_RUN.value: " Somebody else who may decide in this queue must do it.",
        Rule.RELATED.value: " A person related to neither of you must decide it.",
        Rule.RELATED_AGREED.value: " A person unrelated to both of you must agree.",
        Rule.SUBMITTER_ANSWERS.value: " The question was put to them.",
        Rule.SCOPE.value: " The roles reviewer and admin have it; an admin of the tenant grants them.",
    }
    reason = str(error.data.get("reason", ""))
    return (
        f"{reason[:1].upper()}{reason[1:]}.{more.get(str(error.data.get('rule')), ' Ask an administrator.')}"
    )


def _map_typing_faults(error: InterlockError) -> dict[str, str]:
    """Map a fault to one of the card's own fields: the reason, or the text to be typed."""
    pointer = str(error.data.get("pointer", ""))
    return {pointer[1:]: f"Needed: {error.data['detail']}."} if isinstance(error, NotSaid) and pointer else {}


def _at_fields(error: InterlockError) -> dict[str, tuple[str, ...]]:
    """Map the verb's objection to a value to the field that it names."""
    pointer = str(error.data.get("pointer", ""))
    for start in ("/arguments", "/answer"):
        if pointer.startswith(start):
            return {pointer.removeprefix(start): (str(error.data.get("detail", error)),)}
    return {}


def _faults_of(error: DecisionInvalid) -> list[str]:
    if isinstance(error, FormFaulty):
        return [
            f"{where or 'The value'}: {text}" for where, said in error.read.faults.items() for text in said
        ]
    return [str(error)]


def _format_decision_message(settled: Request, word: DecisionInput) -> str:
    """Describe the recorded decision and how many more people must agree."""
    if settled.status != "pending":
        return SAID[word.kind]
    with tenant_transaction(settled.tenant_id):
        missing = missing_for(settled, decisions_of(settled.id), word.arguments)
    if missing == 1:
        return f"{SAID[word.kind]} One more person must agree before it is done."
    return f"{SAID[word.kind]} {missing} more people must agree before it is done."


def _build_next_url(request: PageRequest, done: UUID) -> str:
    """Build the address to go to after a decision.

    Back to the list with the next request open and this one struck through, or to the page the form came
    from.
    """
    where = way_back(request)
    if not where.startswith("/approvals?"):
        return where or resolve_url("approval", done)
    following = row_id(request.POST.get("next", ""))
    query = [("done", str(done)), *([("open", str(following))] if following is not None else [])]
    return f"{where}&{urlencode(query)}"
