"""A request to people as it is opened, with its frozen packet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRequest:
    """A request to be opened; its packet is already frozen bytes."""

    id: UUID
    run_id: UUID
    call_id: str
    kind: str
    packet: bytes
    packet_digest: str
    action_digest: str
    tool: str
    queue: str
    quorum: int
    risk: str
    amount: Decimal | None
    has_amount: bool
    submitter: UUID
    submitter_owner: UUID
    grant_seconds: int
    expires_at: datetime
    answer_schema: Mapping[str, Any] | None = None
    retriers: Sequence[UUID] = ()
    retrier_owners: Sequence[UUID] = ()
    sealed: bool = False
