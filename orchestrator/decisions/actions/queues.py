"""Closing a queue, which takes a look at everything that names it, and opening it again (R-SEC-11)."""

from uuid import UUID

from orchestrator.core.common.errors import QueueInUse
from orchestrator.decisions.queries.queues import QueueNow, queue_now
from tenancy.actions.queues import locked_queue, set_closed
from tenancy.db.tenant_context import tenant_transaction


def close_queue(tenant_id: UUID, name: str, *, by: UUID | None, reason: str) -> QueueNow:
    """Close a queue: nothing new may name it. Audited. Outermost verb: owns the transaction.

    A run under way whose older version names it may still ask in it. One that was closed before keeps its
    time. Raises NotFound, and QueueInUse while a published version, a membership or an open request names it.
    """
    with tenant_transaction(tenant_id):
        # Whoever publishes or gives a role that names it holds it too: what they write is seen below.
        row = locked_queue(name)
        if row.closed_at is None:
            if held := queue_now(name).keeps_open:
                raise QueueInUse(name=name, named_by=list(held), shown="; ".join(held)[:1_000])
            set_closed(tenant_id, row, closed=True, by=by, reason=reason)
        return queue_now(name)


def reopen_queue(tenant_id: UUID, name: str, *, by: UUID | None, reason: str) -> QueueNow:
    """Open a closed queue again; an open one stays as it is. Audited. Outermost verb: owns the transaction.
    Raises NotFound."""
    with tenant_transaction(tenant_id):
        row = locked_queue(name)
        if row.closed_at is not None:
            set_closed(tenant_id, row, closed=False, by=by, reason=reason)
        return queue_now(name)
