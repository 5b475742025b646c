"""The names of the news from approvals."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.dispatch import Signal

request_settled = Signal()
"""Sent inside the settling transaction with `settlement: Settlement`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """How a request ended, as word for its run. `by` is the principal that settled it, None for the clock."""

    tenant_id: UUID
    run_id: UUID
    signal_kind: str
    signal_payload: dict[str, Any]
    by: UUID | None


yes_deferred = Signal()
"""Sent inside the transaction that keeps a yes back, with `deferred: YesDeferred`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class YesDeferred:
    """That a yes to a run's request takes effect in so many seconds. A hint: the row is what counts."""

    tenant_id: UUID
    run_id: UUID
    seconds: float
