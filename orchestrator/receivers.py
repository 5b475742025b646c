"""News from the lower floors, each translated into one verb."""

from typing import Any

from django.dispatch import receiver

from approvals.signals import request_settled
from orchestrator.actions.signalling import leave_signal


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
