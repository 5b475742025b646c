"""Reads of approvals. All inside the tenant's context."""

from collections.abc import Iterable
from uuid import UUID

from django.db.models import QuerySet

from approvals.core.quorum import Vote
from approvals.models import Decision, GrantUse, Request


def list_approval_requests(
    *, status: str | None = None, run_id: UUID | None = None, queue: str | None = None
) -> QuerySet[Request]:
    """Requests, oldest first, filtered."""
    found = Request.objects.order_by("created_at", "id")
    if status:
        found = found.filter(status=status)
    if run_id is not None:
        found = found.filter(run_id=run_id)
    return found.filter(queue=queue) if queue else found


def decisions_of(request_id: UUID) -> list[Decision]:
    """The words that were said to a request, in order."""
    return list(Decision.objects.filter(request_id=request_id).order_by("at", "id"))


def decisions_by_request(requests: Iterable[UUID]) -> dict[UUID, list[Decision]]:
    """The words that were said to each of many requests, in order."""
    found: dict[UUID, list[Decision]] = {request: [] for request in requests}
    for decision in Decision.objects.filter(request_id__in=found).order_by("at", "id"):
        found[decision.request_id].append(decision)
    return found


def uses_of(requests: Iterable[UUID]) -> dict[UUID, GrantUse]:
    """The use of each grant that was used."""
    return {use.id: use for use in GrantUse.objects.filter(id__in=list(requests))}


def votes_of(decisions: Iterable[Decision]) -> list[Vote]:
    """Decisions as far as counting goes, in their order."""
    return [
        Vote(str(d.owner), d.kind, None if d.arguments is None else bytes(d.arguments), str(d.principal))
        for d in decisions
    ]
