"""News from the lower floors, each translated into one verb."""

from functools import partial
from typing import Any

from django.db import transaction
from django.dispatch import receiver

from approvals.signals import request_settled, yes_deferred
from orchestrator.runs.actions.run_signals import leave_signal
from orchestrator.runs.gateways.job_queue import take_later


@receiver(request_settled)
def a_request_was_settled(sender: Any, settlement: Any, **_: Any) -> None:
    """A decision or an expiry is word for its run, in the same transaction (docs/ring.md)."""
    leave_signal(
        settlement.tenant_id,
        settlement.run_id,
        settlement.signal_kind,
        settlement.signal_payload,
        settlement.by,
    )


@receiver(yes_deferred)
def a_yes_was_kept_back(sender: Any, deferred: Any, **_: Any) -> None:
    """A worker looks when it takes effect, once it is committed."""
    transaction.on_commit(partial(take_later, deferred.run_id, after=deferred.seconds))
