"""GET and POST /runs/<id>/retry: begin an ended run again after one of its records (R-SESS-9, R-UI-3)."""

from typing import Any, Final
from uuid import UUID, uuid4

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from orchestrator.console.queries.run_summary import effects_done
from orchestrator.console.views.runs import LONGEST_REASON
from orchestrator.core.admission.errors import EffectInDoubt, LearntLate
from orchestrator.runs.actions.retry import Retry, retry_run
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.checkpoints import EndedRun
from orchestrator.runs.queries.retry_lineage import newer_version, retried_as
from orchestrator.runs.queries.runs import run_of
from tenancy.core.errors import InterlockError
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import uuid_or_none
from tenancy.web.page_auth import PageRequest, require_member

SHOWN: Final = 12
DIGITS: Final = 15
NO_REASON: Final = "Say why: the reason stands in the trace."
NO_RECORD: Final = "Choose after which record it begins."


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.OPERATE, Scope.SUBMIT)
def show_retry_page(request: PageRequest, run_id: UUID) -> HttpResponse:
    """Render the explanation of a retry and its possible start records. A POST starts the retry.

    A refusal is shown on the same page.
    """
    given = request.POST if request.method == "POST" else request.GET
    reason = given.get("reason", "").strip()[:LONGEST_REASON]
    key = uuid_or_none(given.get("key", "")) or uuid4()
    chosen, below = (
        _parse_record_number(given.get("record", "")),
        _parse_record_number(request.GET.get("below", "")),
    )
    faults: dict[str, str] = {}
    status = 200
    if request.method == "POST":
        with tenant_transaction(request.member.tenant.id):
            run_of(run_id)
        faults = {} if chosen is not None else {"record": NO_RECORD}
        faults |= {} if reason else {"reason": NO_REASON}
        status = 422
        if not faults:
            asked = Retry(
                principal=request.member.principal, owner=request.member.owner, reason=reason, record=chosen,
                key=f"page-{key}",
            )  # fmt: skip
            try:
                made = retry_run(request.member.tenant.id, run_id, asked)
            except InterlockError as refused:
                faults, status = {"": str(refused)}, 409
            else:
                messages.success(request, "The run was begun again, as this one.")
                return redirect("run", made.run)
    with tenant_transaction(request.member.tenant.id):
        context = _build_retry_context(run_of(run_id), chosen, below)
        if request.method != "POST" and context["chosen"] is None:
            # After a refusal only the person's own choice stays selected.
            context["chosen"] = context["newest"]
        context |= {"faults": faults, "fault": faults.get("", ""), "reason": reason, "key": key}
        return render(request, "orchestrator/retry.html", context, status=status)


def _build_retry_context(run: Run, chosen: int | None, below: int | None) -> dict[str, Any]:
    past = EndedRun(run)
    found = past.page(below, SHOWN)
    able = [one.record for one in found.found if one.refused is None]
    return {
        "run": run,
        "over": None if past.over is None else str(past.over),
        "doubtful": isinstance(past.over, EffectInDoubt | LearntLate),
        "retried_as": retried_as(run.id),
        "newer_version": newer_version(run),
        "checkpoints": found.found,
        "older": found.below,
        "chosen": chosen if chosen in able else None,
        "newest": next(iter(able), None),
        "able": bool(able),
        "done": effects_done(run),
    }


def _parse_record_number(text: str) -> int | None:
    """Parse a record number from an address or a form; None if it is not a number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS else None
