"""The port through which the trace asks the layer above for runs and their heads.

The layer above registers itself when it is ready; this layer does not import it
(docs/decisions/apps-in-layers.md).
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol
from uuid import UUID

from traces.core.integrity.chain import Head


class PinnedManifest(NamedTuple):
    """A run's manifest and the pins it names, both as the canonical bytes whose digests are bound."""

    manifest: bytes
    pins: bytes


class Runs(Protocol):
    """The runs of the current tenant. Both methods are called in the tenant's context and only read."""

    def heads(self, run_id: UUID | None = None) -> Mapping[UUID, Head]:
        """Return the head that each run claims: of all runs, or of the given run if it exists."""
        ...

    def load_pins(self, run_id: UUID) -> PinnedManifest | None:
        """Return the manifest and pins of a run; None if there is no such run."""
        ...


class NoRuns:
    """The default when nothing is registered: the trace is verified by itself."""

    def heads(self, run_id: UUID | None = None) -> Mapping[UUID, Head]:
        """Return no heads."""
        return {}

    def load_pins(self, run_id: UUID) -> PinnedManifest | None:
        """Return no pins."""
        return None


_registered: list[Runs] = [NoRuns()]


def register_runs(runs: Runs) -> None:
    """Register the implementation that `get_runs_port` returns from now on."""
    _registered[:] = [runs]


def get_runs_port() -> Runs:
    """Return the registered implementation."""
    return _registered[0]
