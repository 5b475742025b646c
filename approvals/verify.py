"""The proof that requests and decisions are as they were made (R-TRACE-3's share)."""

from uuid import UUID

from approvals.actions import columns_of
from approvals.core.digests import decision_digest
from approvals.core.lifecycle import AGREEING
from approvals.models import Decision, Request
from traces.core.canonical import digest
from traces.verify import Fault, register_check


def check_run(run_id: UUID) -> list[Fault]:
    """Every fault of a run's requests and decisions. Inside the tenant's context."""
    faults: list[Fault] = []
    for request in Request.objects.filter(run_id=run_id).order_by("created_at", "id"):
        if digest("packet", bytes(request.packet)) != request.packet_digest:
            faults.append(_fault("Request", request.id, "packet", "it does not fit its digest"))
        decisions = list(request.decisions.order_by("at", "id"))
        for decision in decisions:
            faults += _decision(request, decision)
        if request.status == "decided" and not _decided(request, decisions):
            faults.append(_fault("Decision", request.id, "request_id", "the request is decided, its decision is missing"))
    return faults


def _decision(request: Request, decision: Decision) -> list[Fault]:
    if decision_digest(columns_of(decision)) != decision.digest:
        return [_fault("Decision", decision.id, "digest", "its content is not what was hashed")]
    if decision.packet_digest != request.packet_digest:
        return [_fault("Decision", decision.id, "packet_digest", "it was made on another packet")]
    return []


def _decided(request: Request, decisions: list[Decision]) -> bool:
    fitting = [decision for decision in decisions if decision.kind == request.outcome]
    if request.outcome in AGREEING:
        return bool(fitting) and (request.outcome == "edit" or len(decisions) >= request.quorum)
    return bool(fitting)


def _fault(where: str, key: UUID, column: str, sentence: str) -> Fault:
    return Fault(where=f"{where} {key}", number=0, column=column, sentence=sentence)


register_check("approvals", check_run)
