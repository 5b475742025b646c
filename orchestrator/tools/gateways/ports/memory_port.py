"""The port by which a tool proposes something to remember; the verb is registered where verbs are known."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from orchestrator.core.domain.memory_gate import Kind
from orchestrator.knowledge.models.memory import MemoryProposal

_KEEPERS: "dict[str, Propose]" = {}


class Propose(Protocol):
    """Writes a proposal down, once a key, inside the tenant's transaction. Raises MemoryRefused."""

    def __call__(
        self,
        tenant_id: UUID,
        run: UUID,
        *,
        key: str,
        kind: Kind,
        text: str,
        facts: Sequence[str],
        days: int,
    ) -> MemoryProposal: ...


def register_proposer(propose: Propose) -> None:
    """The verb that writes proposals down."""
    _KEEPERS["memory"] = propose


def get_memory_proposer() -> Propose:
    """The verb that was registered."""
    return _KEEPERS["memory"]
