"""One person's same decision on several similar requests (R-APPR-9)."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from approvals.actions import DecisionInput, decide_request
from approvals.core.bulk import explain_bulk_mismatch
from approvals.core.errors import ApprovalError, DecisionInvalid, RequestNotFound
from approvals.core.lifecycle import DecisionKind
from approvals.models import Request
from approvals.queries.bulk import build_bulk_candidate
from tenancy.db.tenant_context import tenant_transaction

WORDS = (DecisionKind.APPROVE, DecisionKind.REJECT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result for one request: its state after the decision, or the reason the decision was refused."""

    request_id: UUID
    request: Request | None = None
    error: ApprovalError | None = None


def decide_together(
    tenant_id: UUID,
    principal_id: UUID,
    shown: Sequence[tuple[UUID, str]],
    kind: DecisionKind,
    reason: str = "",
) -> tuple[Outcome, ...]:
    """Make the same decision on each of `shown`: request and digest of the packet that was shown.

    Each is a separate decision in its own transaction, under every rule of a single decision; a refused
    decision does not affect the others.

    Raises: DecisionInvalid (422) if the requests may not be decided together, RequestNotFound (404).
    """
    if kind not in WORDS:
        raise DecisionInvalid(detail="together they are approved or rejected")
    ids = list(dict.fromkeys(request for request, _ in shown))
    with tenant_transaction(tenant_id):
        found = Request.objects.in_bulk(ids)
        if len(found) < len(ids):
            raise RequestNotFound
        if why := explain_bulk_mismatch([build_bulk_candidate(found[one]) for one in ids]):
            raise DecisionInvalid(detail=why)
    digests = dict(shown)
    return tuple(_try_decide_request(tenant_id, principal_id, one, DecisionInput(
        kind=kind, reason=reason, packet_digest=digests[one]
    )) for one in ids)  # fmt: skip


def _try_decide_request(
    tenant_id: UUID, principal_id: UUID, request_id: UUID, word: DecisionInput
) -> Outcome:
    try:
        return Outcome(
            request_id=request_id, request=decide_request(tenant_id, request_id, principal_id, word)
        )
    except ApprovalError as error:
        return Outcome(request_id=request_id, error=error)
