"""GET and POST /policy/undo: how long an approval can be undone (docs/console.md)."""

from typing import Final

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from approvals.actions.undo_settings import LONGEST_REASON, set_undo_window
from approvals.core.undo import LONGEST
from approvals.queries.undo import list_undo_window_versions, window_now
from tenancy.core.errors import Stale
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.member_queries import names_of
from tenancy.web.page_auth import PageRequest, check_scopes, require_member

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
