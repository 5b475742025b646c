"""The gateway's interface to the queue in front of a model (R-TOOL-22)."""

from typing import Protocol

from orchestrator.core.tools.circuit_breaker import Kind


class Lines(Protocol):
    """The places of one run in model queues. Each method may wait for the database."""

    @property
    def waits(self) -> bool:
        """True if the run has waited for its model before this call."""
        ...

    def enter(self, subject: str, most: int, *, own: bool, timeout_ms: int) -> bool:
        """Return whether the run may call the model now; otherwise queue the run.

        The model takes `most` calls at once.
        """
        ...

    def leave(self) -> None:
        """Release the run's place because its call is over, and call up the next run in the queue."""
        ...

    def stand_behind(self, kind: Kind, subject: str) -> None:
        """Let the run wait until the circuit lets a call through."""
        ...

    def stand_behind_again(self, kind: Kind, subject: str) -> None:
        """Let the run wait behind the circuit again, because its probe has failed."""
        ...

    def call_all(self) -> None:
        """Wake the runs that wait behind a circuit that has closed."""
        ...
