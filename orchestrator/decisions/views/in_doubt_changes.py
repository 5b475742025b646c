"""GET and POST /runs/<id>/effects: what became of changes that were in doubt when the run ended."""

from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from approvals.core.errors import NotYours
from orchestrator.console.views.runs import LONGEST_REASON
from orchestrator.core.common.run_status import TERMINAL_STATUSES, Status
from orchestrator.decisions.actions.late_reconciliation import (
    VERDICTS,
    ask_look_up,
    reconcile_late_effect,
    why_not,
)
from orchestrator.decisions.queries.in_doubt_changes import shown_doubts
from orchestrator.runs.queries.runs import run_of
from tenancy.core.errors import InterlockError
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.web.page_auth import PageRequest, check_scopes, require_member

NO_REASON: Final = "Say how you know: the reason stands in the trace."
NO_VERDICT: Final = "Say whether it happened."
WHY: Final = {
    "in_doubt": "The call was sent, and its answer does not say whether it happened.",
    "open": "The call was answered with an error, which does not say that nothing was changed. A retry asks "
    "before it sends the call again.",
    "undo_in_doubt": "This call was to undo an earlier one. It was sent, and its answer does not say whether "
    "it happened.",
    "learnt_late": "An outcome of this call arrived after the run had stopped waiting for it.",
    "reopened": "A person said that it did not happen. An outcome that says otherwise arrived afterwards.",
}


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.READ)
def show_in_doubt_changes_page(request: PageRequest, run_id: UUID) -> HttpResponse:
    """The changes in doubt, each with a form to say whether it happened; a refusal stands in place."""
    fault, named, status = "", request.POST.get("effect", ""), 200
    reason = request.POST.get("reason", "").strip()[:LONGEST_REASON]
    if request.method == "POST":
        check_scopes(request.member, Scope.DECIDE)
        try:
            fault = _submit_verdict(request, run_id, named, reason)
        except InterlockError as refused:
            if refused.code == "not-found":
                raise
            fault, status = str(refused), 403 if isinstance(refused, NotYours) else 409
        else:
            status = 422
        if not fault:
            return redirect("run-effects", run_id)
    with tenant_transaction(request.member.tenant.id):
        return render(
            request, "orchestrator/effects.html", _build_page_context(request, run_id, fault, named, reason),
            status=status,
        )  # fmt: skip


def _submit_verdict(request: PageRequest, run_id: UUID, effect: str, reason: str) -> str:
    """Take what was sent; what is wrong with it, empty for nothing."""
    who = request.member
    if "look_up" in request.POST:
        ask_look_up(who.tenant.id, run_id, effect, by=who.principal)
        messages.success(request, "The look-up was asked for. What it brings stands here in a moment.")
        return ""
    verdict = next((one for one in VERDICTS if one == request.POST.get("verdict")), None)
    with tenant_transaction(who.tenant.id):
        run_of(run_id)
    if verdict is None:
        return NO_VERDICT
    if not reason:
        return NO_REASON
    reconcile_late_effect(who.tenant.id, run_id, effect, by=who.principal, verdict=verdict, reason=reason)
    messages.success(request, "It was noted. The trace of the run has it in a moment.")
    return ""


def _build_page_context(
    request: PageRequest, run_id: UUID, fault: str, named: str, reason: str
) -> dict[str, Any]:
    run = run_of(run_id)
    rows = [
        {
            "one": one,
            "change": one.doubt.change,
            "why": WHY[one.doubt.why],
            "refusal": why_not(run, one.doubt.change, request.member),
            "fault": fault if one.doubt.change.effect == named else "",
            "reason": reason if one.doubt.change.effect == named else "",
        }
        for one in shown_doubts(run)
    ]
    return {
        "run": run,
        "rows": rows,
        "over": Status(run.status) in TERMINAL_STATUSES,
        "fault": "" if any(row["fault"] for row in rows) else fault,
    }
