"""Reads of approvals. All inside the tenant's context."""

from uuid import UUID

from django.db.models import QuerySet

from approvals.models import Decision, Request


def inbox(
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
