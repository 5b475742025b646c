"""GET /reviews and GET and POST /reviews/<id>: items that runs submit for human review (R-TOOL-19)."""

from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from approvals.core.errors import NotYours
from orchestrator.console.queries.run_contents import ShownFact, facts_of
from orchestrator.core.approval.errors import ReviewRefused
from orchestrator.core.approval.review_item import LONGEST_NOTE
from orchestrator.reviews.actions.review_queue import answer_review, release_review, take_review
from orchestrator.reviews.queries.review_holders import may_release
from orchestrator.reviews.queries.reviews import (
    ReviewState,
    answered_items,
    cursor_of,
    item_of,
    open_items,
    refused_to,
)
from orchestrator.runs.queries.runs import state_now
from tenancy.core.errors import InterlockError
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.member_queries import names_of
from tenancy.web.page_auth import PageRequest, check_scopes, require_member

PAGE: Final = 50
WORDS: Final = {
    "confirmed": "Confirmed: it is as it says",
    "objected": "Objected: it is not so, or must not be so",
    "undecided": "Undecided: this cannot be told from here",
}


class AnswerForm(forms.Form):
    """One finding with a note about it."""

    finding = forms.ChoiceField(label="What you found", choices=list(WORDS.items()), widget=forms.RadioSelect)
    note = forms.CharField(
        label="In your words", max_length=LONGEST_NOTE, widget=forms.Textarea(attrs={"rows": 4}),
        help_text="The run is told this, as a person's word. It approves no call.",
    )  # fmt: skip

    def clean_note(self) -> str:
        """Replace the browser's CRLF line ends by LF."""
        note: str = self.cleaned_data["note"]
        return note.replace("\r\n", "\n")


@require_safe
@require_member(Scope.READ)
def show_reviews_page(request: PageRequest) -> HttpResponse:
    """Render the waiting reviews, most serious first, and the latest answers.

    A page with a cursor has one of the two lists only.
    """
    tab, cursor = request.GET.get("tab", ""), request.GET.get("cursor", "")
    with tenant_transaction(request.member.tenant.id):
        waiting = [] if tab == "answered" else open_items(PAGE + 1, cursor)
        answered = [] if cursor and tab != "answered" else answered_items(PAGE + 1, cursor)
        context = {
            "waiting": waiting[:PAGE], "answered": answered[:PAGE], "tab": tab, "cursor": cursor,
            "names": names_of([one.holder for one in (*waiting, *answered)]),
            "more_waiting": cursor_of(waiting[PAGE - 1]) if len(waiting) > PAGE else "",
            "more_answered": cursor_of(answered[PAGE - 1]) if len(answered) > PAGE else "",
        }  # fmt: skip
        return render(request, "reviews/list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.READ)
def show_review_page(request: PageRequest, review_id: UUID) -> HttpResponse:
    """Render one item with the facts it rests on. A POST takes it, releases it or answers it."""
    if request.method != "POST":
        return _render_review_page(request, review_id, AnswerForm())
    check_scopes(request.member, Scope.DECIDE)
    form = AnswerForm(request.POST) if request.POST.get("do") == "answer" else AnswerForm()
    if form.is_bound and not form.is_valid():
        return _render_review_page(request, review_id, form, status=422)
    try:
        messages.success(request, _apply_review_action(request, review_id, form))
    except (ReviewRefused, NotYours) as error:
        return _render_review_page(request, review_id, form, fault=error)
    return redirect("review", review_id=review_id)


def _apply_review_action(request: PageRequest, review_id: UUID, form: AnswerForm) -> str:
    """Take, release or answer the review, and return the confirmation sentence.

    Raises: NotFound, NotYours, ReviewRefused.
    """
    house, by = request.member.tenant.id, request.member.principal
    if form.is_bound:
        answer_review(house, review_id, by=by, **form.cleaned_data)
        return "Answered. The run is told when it asks."
    if request.POST.get("do") == "release":
        release_review(house, review_id, by=by)
        return "It is nobody's now."
    take_review(house, review_id, by=by)
    return "It is yours now. Nobody else answers it until you give it back."


def _render_review_page(
    request: PageRequest,
    review_id: UUID,
    form: AnswerForm,
    *,
    fault: InterlockError | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render the item in its current state; after a fault also the refusal and the entered note."""
    if fault is not None:
        status = 403 if isinstance(fault, NotYours) else 409
    with tenant_transaction(request.member.tenant.id):
        found = item_of(review_id)
        refused = refused_to(found, request.member)
        mine = found.holder == request.member.principal
        context: dict[str, Any] = {
            "found": found, "row": found.row, "form": form, "refused": refused, "mine": mine,
            "facts": _load_evidence_facts(found), "names": names_of([found.holder]), "fault": fault,
            "may_release": may_release(request.member.tenant.id, found, request.member),
            "may_answer": refused is None and (found.state == "waiting" or (found.state == "taken" and mine)),
        }  # fmt: skip
        return render(request, "reviews/one.html", context, status=status)


def _load_evidence_facts(found: ReviewState) -> list[tuple[Any, ShownFact | None]]:
    """Pair each cited fact with its present content, or with None if a newer version of the fact exists."""
    now = {one.name: one for one in facts_of(found.row.run_id, state_now(found.row.run_id))}
    return [
        (one, held if (held := now.get(one.fact)) is not None and held.fact.version == one.version else None)
        for one in found.evidence
    ]
