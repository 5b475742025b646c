"""Logs the decisions of people, one line each."""

from functools import partial

from django.db import transaction

from approvals.models import Decision, Request
from tenancy.operation_log import Operation, log_operation


def log_decision(request: Request, decision: Decision) -> None:
    """Log the decision once the caller's transaction has committed; its time counts from the request."""
    line = partial(
        log_operation,
        Operation.DECISION_TAKEN,
        tenant=request.tenant_id,
        run=request.run_id,
        took=decision.at - request.created_at,
        request=str(request.id),
        decision=decision.kind,
        principal=str(decision.principal),
    )
    transaction.on_commit(line)
