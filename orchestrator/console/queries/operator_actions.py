"""The actions of people on a run: signals and decisions, in order (R-UI-3, R-SEC-6).

Call it in the tenant's context.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

import orjson

from approvals.models import Decision, Request
from orchestrator.runs.models.run import Run, RunSignal, SignalReceipt
from orchestrator.runs.queries.run_list import names_of
from traces.models import Event

MOST: Final = 200
WORDS: Final = {
    "cancel": "asked to cancel", "pause": "asked to pause", "resume": "asked to resume",
    "corrected": "corrected what a call had cost", "repriced": "corrected a price for what comes",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorAction:
    """One action; `id` is unique within the run.

    `reason` is text from a person. `taken` is the record that consumed the signal; None where no record
    has, or none needs to. `request` is the decided request.
    """

    id: str
    at: datetime
    who: str
    what: str
    reason: str = ""
    taken: int | None = None
    request: UUID | None = None
    role: str = ""


def acts_of(run: Run) -> tuple[OperatorAction, ...]:
    """Return the actions of people on the run, oldest first; the newest two hundred of each kind."""
    signals = list(RunSignal.objects.filter(run_id=run.id, kind__in=WORDS).order_by("-id")[:MOST])
    taken = dict(
        SignalReceipt.objects.filter(id__in=[signal.id for signal in signals]).values_list("id", "record")
    )
    requests = dict(Request.objects.filter(run_id=run.id).values_list("id", "tool"))
    decisions = list(Decision.objects.filter(request_id__in=requests).order_by("-at")[:MOST])
    by = [run.retried_by or run.submitted_by, *(s.by for s in signals), *(d.principal for d in decisions)]
    names = names_of(by)
    acts = [
        OperatorAction(
            id=f"wish-{signal.id}", at=signal.at,
            who=names.get(signal.by, "Interlock") if signal.by else "Interlock",
            what=WORDS[signal.kind], reason=str(signal.payload.get("reason", "")),
            taken=taken.get(signal.id),
        )
        for signal in signals
    ]  # fmt: skip
    acts += [
        OperatorAction(
            id=f"word-{decision.id}", at=decision.at,
            who=names.get(decision.principal, ""), reason=decision.reason,
            what=f"{decision.kind.replace('_', ' ')}: {requests[decision.request_id] or 'a question'}",
            request=decision.request_id, role=decision.role,
        )
        for decision in decisions
    ]  # fmt: skip
    acts.append(_build_first_action(run, names.get(by[0], "") if by[0] else ""))
    return tuple(sorted(acts, key=lambda act: act.at))


def _build_first_action(run: Run, who: str) -> OperatorAction:
    """Return the action that created the run: a submission or a retry."""
    if run.retry_of_id is None:
        return OperatorAction(id="task", at=run.created_at, who=who, what="submitted the task")
    body = Event.objects.values_list("body", flat=True).get(run_id=run.id, kind="run_retried")
    return OperatorAction(
        id="retry", at=run.created_at, who=who, reason=str(orjson.loads(bytes(body))["reason"]),
        what=f"had it begun again, after record {run.retry_record} of run {str(run.retry_of_id)[-8:]}",
    )  # fmt: skip
