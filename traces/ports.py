"""What the trace asks of the floor above: which runs there are and what they claim (docs/ring.md).

The floor above registers itself when it is ready; this floor knows nothing of it.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol
from uuid import UUID

from traces.core.integrity.chain import Head


class Pinned(NamedTuple):
    """A run's manifest and the pins it names, both as the canonical bytes whose digests are bound."""

    manifest: bytes
    pins: bytes


class Runs(Protocol):
    """The runs of the current tenant. Both are called inside the tenant's context and read only."""

    def heads(self, run_id: UUID | None = None) -> Mapping[UUID, Head]:
        """The head that each run claims: of all runs, or of the one named, if it exists."""
        ...

    def pinned(self, run_id: UUID) -> Pinned | None:
        """What a run is pinned to; None where there is no such run."""
        ...


class NoRuns:
    """Nobody has registered: the trace is verified by itself."""

    def heads(self, run_id: UUID | None = None) -> Mapping[UUID, Head]:
        """No heads."""
        return {}

    def pinned(self, run_id: UUID) -> Pinned | None:
        """No pins."""
        return None


_registered: list[Runs] = [NoRuns()]


def register_runs(runs: Runs) -> None:
    """Let the trace ask `get_runs_port` from now on."""
    _registered[:] = [runs]


def get_runs_port() -> Runs:
    """Whoever registered."""
    return _registered[0]
