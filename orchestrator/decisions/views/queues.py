"""GET and POST /tenant/queues: the queues in which people decide (R-SEC-11, R-APPR-5)."""

from typing import Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from orchestrator.core.common.errors import QueueInUse
from orchestrator.decisions.actions.queues import close_queue, reopen_queue
from orchestrator.decisions.queries.queues import queues_now
from tenancy.actions.queues import add_queue, describe_queue
from tenancy.core.errors import InvalidInput, NotFound
from tenancy.core.queues import LONGEST_DESCRIPTION
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Queue
from tenancy.web.page_auth import (
    PageRequest,
    check_scopes,
    redirect_unless_post,
    require_member,
    respond_with_problem,
)

NO_REASON: Final = "Say why: the reason stands in the audit log."


class QueueForm(forms.Form):
    """A queue to add."""

    name = forms.CharField(
        label="Name", max_length=64, help_text="Lower-case letters, digits, - and _. It never changes."
    )
    description = forms.CharField(label="What it is for", max_length=LONGEST_DESCRIPTION, required=False)
    reason = forms.CharField(label="Reason", max_length=500)


@require_http_methods(["GET", "HEAD", "POST"])
@require_member()
def show_queues_page(request: PageRequest) -> HttpResponse:
    """Every queue with who clears it and what waits there. A POST adds one."""
    check_scopes(request.member, Scope.ADMIN if request.method == "POST" else Scope.INSPECT)
    if request.method != "POST":
        return _render_queues_page(request)
    form = QueueForm(request.POST)
    if not form.is_valid():
        return _render_queues_page(request, form, status=422)
    given = form.cleaned_data
    try:
        made = add_queue(
            request.member.tenant.id, given["name"], given["description"], by=request.member.principal,
            reason=given["reason"],
        )  # fmt: skip
    except InvalidInput as error:
        for fault in error.data["errors"]:
            form.add_error(fault["pointer"].removeprefix("/"), fault["detail"])
        return _render_queues_page(request, form, status=422)
    messages.success(request, f"The queue {made.name} is there.")
    return redirect("queues")


@redirect_unless_post("queues")
@require_member(Scope.ADMIN)
def update_queue(request: PageRequest, queue_id: UUID) -> HttpResponse:
    """Describe a queue, close it, or open it again."""
    house, by, wish = request.member.tenant.id, request.member.principal, request.POST.get("wish", "")
    with tenant_transaction(house):
        row = Queue.objects.filter(id=queue_id).first()
    if row is None or wish not in ("describe", "close", "reopen"):
        raise NotFound
    reason = request.POST.get("reason", "").strip()[:500]
    if not reason:
        messages.error(request, NO_REASON)
        return _render_queues_page(request, status=422)
    try:
        if wish == "describe":
            describe_queue(house, row.name, request.POST.get("description", ""), by=by, reason=reason)
            messages.success(request, f"What the queue {row.name} is for is set.")
        elif wish == "close":
            close_queue(house, row.name, by=by, reason=reason)
            messages.success(request, f"The queue {row.name} is closed.")
        else:
            reopen_queue(house, row.name, by=by, reason=reason)
            messages.success(request, f"The queue {row.name} is open again.")
    except QueueInUse as error:
        return respond_with_problem(request, error)
    except InvalidInput as error:
        messages.error(request, error.data["errors"][0]["detail"])
        return _render_queues_page(request, status=422)
    return redirect("queues")


def _render_queues_page(
    request: PageRequest, form: QueueForm | None = None, *, status: int = 200
) -> HttpResponse:
    with tenant_transaction(request.member.tenant.id):
        context = {
            "rows": queues_now(), "form": form or QueueForm(), "may_admin": request.member.may(Scope.ADMIN)
        }  # fmt: skip
        return render(request, "tenancy/queues.html", context, status=status)
