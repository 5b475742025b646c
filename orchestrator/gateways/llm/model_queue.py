"""What the gateway asks of the line in front of a model (R-TOOL-22)."""

from typing import Protocol

from orchestrator.core.tools.circuit_breaker import Kind


class Lines(Protocol):
    """The places of one run in front of models. Each method may wait for the database."""

    @property
    def waits(self) -> bool:
        """True if the run has waited for its model before this call."""
        ...

    def enter(self, subject: str, most: int, *, own: bool, timeout_ms: int) -> bool:
        """Whether the run may ask now a model that takes `most` calls at once; where not, it is in line."""
        ...

    def leave(self) -> None:
        """The run's call is over, and so is its place: whoever is next in line is called up."""
        ...

    def stand_behind(self, kind: Kind, subject: str) -> None:
        """The run waits until the circuit lets a call through."""
        ...

    def stand_behind_again(self, kind: Kind, subject: str) -> None:
        """The probe of a run that waits has failed: the run stands behind the circuit as before."""
        ...

    def call_all(self) -> None:
        """A circuit has closed: those who stood behind it are woken."""
        ...
