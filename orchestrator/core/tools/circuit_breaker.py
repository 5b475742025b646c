"""A circuit breaker for every service that can fail by itself: closed, open, half-open (R-BUDGET-13). Pure.

A closed circuit lets calls through and counts consecutive failures. At the threshold it opens and blocks all
calls until its cooldown is over. Then exactly one call goes out as the probe, under a lease, and its outcome
closes or reopens the circuit. Each change of state has a number. A call carries the number under which it was
admitted, so the answer to a call from before a change has no effect after it.
"""

from datetime import datetime, timedelta
from typing import Literal

from pydantic import Field

from orchestrator.core.common.frozen_model import FrozenModel

Kind = Literal["tool", "model", "use"]
Condition = Literal["closed", "open", "half_open"]
THRESHOLD = 5
COOLDOWN_SECONDS = 30
LONGEST_SUBJECT = 300
# Silence for this long means that the service hangs, even if the run was short of time: most calls are
# answered in a few seconds, and an interactive run never has a profile's whole 60 s left for one call.
TELLING_MS = 20_000
# An inconclusive probe may have met silence. The next probe waits this long, else run after run would hang.
RELEASED_SECONDS = 5


class Setting(FrozenModel):
    """The number of consecutive failures that opens a circuit, and the cooldown in seconds."""

    threshold: int = Field(default=THRESHOLD, ge=1)
    cooldown_seconds: int = Field(default=COOLDOWN_SECONDS, ge=1)


class Circuit(FrozenModel):
    """One circuit. `until`: the end of the cooldown if open, of the prober's lease if half-open."""

    state: Condition = "closed"
    failures: int = 0
    changes: int = 0
    until: datetime | None = None
    reason: str = ""


class Ticket(FrozenModel):
    """The permission to make one call, admitted under change number `changes`, possibly as the probe.

    `marked`: failures were known when the call was admitted, so its success must be recorded.
    """

    kind: Kind
    subject: str
    changes: int = 0
    marked: bool = False
    probe: bool = False


class BlockedCircuit(FrozenModel):
    """No call is admitted for up to `wait_ms` milliseconds."""

    wait_ms: int


def is_circuit_blocking(circuit: Circuit, at: datetime) -> bool:
    """Return whether a call would be blocked at `at`."""
    return circuit.state != "closed" and circuit.until is not None and at < circuit.until


def derive_visible_state(circuit: Circuit, at: datetime) -> Condition:
    """Return the state as shown to people: an open circuit after its cooldown is half-open."""
    return "half_open" if circuit.state == "open" and not is_circuit_blocking(circuit, at) else circuit.state


def wait_ms(circuit: Circuit, at: datetime) -> int:
    """Return for how many milliseconds calls are blocked from `at`; 0 if they are not blocked."""
    if circuit.until is None or not is_circuit_blocking(circuit, at):
        return 0
    return max(1, int((circuit.until - at).total_seconds() * 1000))


def with_probe(circuit: Circuit, at: datetime, lease: timedelta) -> Circuit | None:
    """Return the circuit with its probe admitted, or None if it is closed or still blocking."""
    if circuit.state == "closed" or is_circuit_blocking(circuit, at):
        return None
    return circuit.evolve(state="half_open", until=at + lease, changes=circuit.changes + 1)


def with_failure(circuit: Circuit, changes: int, at: datetime, reason: str, setting: Setting) -> Circuit:
    """Return the circuit after a failure of a call that was admitted under `changes`.

    The failure has no effect if the call was admitted before a change of state, or if the circuit is open.
    """
    if circuit.changes != changes or circuit.state == "open":
        return circuit
    counted = circuit.evolve(failures=circuit.failures + 1, reason=reason)
    if circuit.state == "closed" and counted.failures < setting.threshold:
        return counted
    return _with_open_circuit(counted, at, setting)


def with_success(circuit: Circuit, changes: int) -> Circuit:
    """Return the circuit after a successful call.

    A success of the probe closes the circuit; any other success resets the failure count. It has no effect if
    the call was admitted before a change of state, or if the circuit is open.
    """
    if circuit.changes != changes or circuit.state == "open":
        return circuit
    return (
        with_circuit_reset(circuit) if circuit.state == "half_open" else circuit.evolve(failures=0, reason="")
    )


def with_probe_released(circuit: Circuit, changes: int, at: datetime, setting: Setting) -> Circuit:
    """Return the circuit after an inconclusive probe, for example one that was cut short.

    The next probe is admitted after RELEASED_SECONDS, or after the cooldown if that is shorter.
    """
    if circuit.state != "half_open" or circuit.changes != changes:
        return circuit
    until = at + timedelta(seconds=min(RELEASED_SECONDS, setting.cooldown_seconds))
    return circuit.evolve(state="open", until=until, changes=circuit.changes + 1)


def model_silence_tells(had_ms: int, own_ms: int) -> bool:
    """Return whether the silence of a model call of `had_ms` means that its provider hangs.

    `own_ms` is the profile's timeout. A shorter call was cut by the run's own lack of time, which must not
    block the provider for every run.
    """
    return had_ms >= min(own_ms, TELLING_MS)


def tool_silence_tells(had_ms: int, own_ms: int) -> bool:
    """Return whether the silence of a tool call of `had_ms` means that its service hangs.

    As `model_silence_tells`, but a tool with a long timeout gets a third of its own timeout, `own_ms`.
    """
    return had_ms >= min(own_ms, max(TELLING_MS, own_ms // 3))


def with_circuit_trip(circuit: Circuit, at: datetime, reason: str, setting: Setting) -> Circuit:
    """Return the circuit opened at once, regardless of earlier results."""
    failures = max(setting.threshold, circuit.failures + 1)
    return _with_open_circuit(circuit.evolve(failures=failures, reason=reason), at, setting)


def with_circuit_reset(circuit: Circuit) -> Circuit:
    """Return the circuit closed, as by a person; calls admitted before have no effect any more."""
    return circuit.evolve(state="closed", failures=0, until=None, reason="", changes=circuit.changes + 1)


def _with_open_circuit(circuit: Circuit, at: datetime, setting: Setting) -> Circuit:
    until = at + timedelta(seconds=setting.cooldown_seconds)
    return circuit.evolve(state="open", until=until, changes=circuit.changes + 1)
