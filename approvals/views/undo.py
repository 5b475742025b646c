"""Pages by which a deferred approval is undone, and the setting for how long it can be (docs/console.md)."""

from typing import Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.views.decorators.http import require_http_methods

from approvals.actions.undo import undo_deferred_approval
from approvals.actions.undo_settings import LONGEST_REASON, set_undo_window
from approvals.core.errors import NothingToUndo, NotYours
from approvals.core.undo import LONGEST
from approvals.queries.inbox import Row, rows_of
from approvals.queries.people import AuthorizedPrincipal, decider_of
from approvals.queries.undo import list_undo_window_versions, may_undo, offered_to, window_now
from approvals.views.decision_form import row_id
from approvals.views.request_detail import Notice, card_answer, go_on, shown_card, way_back, way_of
from tenancy.core.errors import InterlockError, Stale
from tenancy.core.roles import Scope
from tenancy.db.change_cursor import mark_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.member_queries import names_of
from tenancy.web.page_auth import PageRequest, check_scopes, require_member

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


def list_undoable_requests(who: AuthorizedPrincipal) -> tuple[Row, ...]:
    """List the requests whose approval this person can undo now, the latest first. Call in the tenant's
    context.
    """
    found = offered_to(who.owner)
    rows = rows_of(found, decider_of(who)) if found else ()
    return tuple(row for row in rows if row.deferred is not None and may_undo(who, row.deferred))


CHOICES: Final = (
    (0, "Not at all: a yes takes effect at once"),
    *((seconds, f"{seconds} second{'s' if seconds > 1 else ''}") for seconds in range(1, LONGEST + 1)),
)


class WindowForm(forms.Form):
    """The length of the undo window and the reason for the change."""

    seconds = forms.TypedChoiceField(label="A yes can be taken back for", coerce=int, choices=CHOICES)
    reason = forms.CharField(
        label="Reason", max_length=LONGEST_REASON, help_text="Saved to the audit log.",
        widget=forms.Textarea(attrs={"rows": 2}),
    )  # fmt: skip
    version = forms.IntegerField(widget=forms.HiddenInput, min_value=0)


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.READ)
def undo_window(request: PageRequest) -> HttpResponse:
    """Render the undo window with its earlier versions. A POST changes it.

    Answers 412 if it was changed in the meantime, 422 if the form is invalid.
    """
    if request.method != "POST":
        return _render_undo_window_page(request)
    check_scopes(request.member, Scope.ADMIN)
    form = WindowForm(request.POST)
    if not form.is_valid():
        return _render_undo_window_page(request, form, status=422)
    given = form.cleaned_data
    try:
        set_undo_window(
            request.member.tenant.id, given["seconds"], expected=given["version"],
            by=request.member.principal, reason=given["reason"],
        )  # fmt: skip
    except Stale:
        messages.error(request, "Somebody changed it in the meantime. This is how it stands; look again.")
        return _render_undo_window_page(request, status=412)
    messages.success(request, "It holds from the next yes on.")
    return redirect("undo-window")


def _render_undo_window_page(
    request: PageRequest, form: WindowForm | None = None, *, status: int = 200
) -> HttpResponse:
    with tenant_transaction(request.member.tenant.id):
        now, before = window_now(), list_undo_window_versions()
        names = names_of([one.by for one in before])
    initial = {"seconds": now.seconds, "version": now.version}
    context = {
        "now": now, "before": before, "names": names,
        "form": form if form is not None else WindowForm(initial=initial),
        "may_admin": request.member.may(Scope.ADMIN),
    }  # fmt: skip
    return render(request, "approvals/undo_window.html", context, status=status)
