"""The Django signals that approvals sends."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.dispatch import Signal

request_settled = Signal()
"""Sent inside the settling transaction with `settlement: Settlement`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The end of a request, as a signal to its run. `by` is the principal that settled it, None for a
    timeout.
    """

    tenant_id: UUID
    run_id: UUID
    signal_kind: str
    signal_payload: dict[str, Any]
    by: UUID | None


yes_deferred = Signal()
"""Sent inside the transaction that keeps a yes back, with `deferred: YesDeferred`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class YesDeferred:
    """A notice: an approval of a run's request takes effect in `seconds`. A hint only; the row is
    authoritative.
    """

    tenant_id: UUID
    run_id: UUID
    seconds: float
