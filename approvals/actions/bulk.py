"""One person's same word to several requests that stand side by side (R-APPR-9)."""

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
    """What became of one request: as it stands after the word, or why the word did not count."""

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
    """Say one word to each of `shown`: request and digest of the packet that was shown.

    Each is a decision of its own, in a transaction of its own, by every rule that holds for one alone; one
    that is refused leaves the others as they are. Raises DecisionInvalid (422) where they may not be decided
    together, RequestNotFound (404).
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
