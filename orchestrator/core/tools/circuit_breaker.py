"""A circuit in front of everything that can fail by itself: closed, open, half-open (R-BUDGET-13). Pure.

Closed lets calls through and counts failures in a row. At the threshold it opens and lets none through until
its cooldown is over; then exactly one call goes out as the probe, under a lease, and its outcome closes the
circuit or opens it again. Each change of state has a number. A call carries the number under which it was
let out, so an answer to a call from before a change says nothing about what came after it.
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
# Silence this long says that the other side hangs, however short of time the run was: most calls are answered
# in a few seconds, and an interactive run never has the whole 60 s of a profile left for one call.
TELLING_MS = 20_000
# A probe that told nothing may have met silence: the next waits a moment, or run after run would hang as one.
RELEASED_SECONDS = 5


class Setting(FrozenModel):
    """How many failures in a row open a circuit, and for how many seconds."""

    threshold: int = Field(default=THRESHOLD, ge=1)
    cooldown_seconds: int = Field(default=COOLDOWN_SECONDS, ge=1)


class Circuit(FrozenModel):
    """One circuit. `until`: the end of the cooldown where open, of the prober's lease where half-open."""

    state: Condition = "closed"
    failures: int = 0
    changes: int = 0
    until: datetime | None = None
    reason: str = ""


class Ticket(FrozenModel):
    """The right to make one call: let out under change number `changes`, maybe as the probe.

    `marked`: failures were known when the call was let out, so that its success is worth writing down.
    """

    kind: Kind
    subject: str
    changes: int = 0
    marked: bool = False
    probe: bool = False


class Blocked(FrozenModel):
    """No call for the moment: for `wait_ms` more at most, when somebody may try."""

    wait_ms: int


def is_circuit_blocking(circuit: Circuit, at: datetime) -> bool:
    """Whether a call would be turned away at `at`."""
    return circuit.state != "closed" and circuit.until is not None and at < circuit.until


def derive_visible_state(circuit: Circuit, at: datetime) -> Condition:
    """The state as a person sees it: an open circuit whose cooldown is over waits for its probe."""
    return "half_open" if circuit.state == "open" and not is_circuit_blocking(circuit, at) else circuit.state


def wait_ms(circuit: Circuit, at: datetime) -> int:
    """How long calls are turned away, from `at`; 0 where they are not."""
    if circuit.until is None or not is_circuit_blocking(circuit, at):
        return 0
    return max(1, int((circuit.until - at).total_seconds() * 1000))


def with_probe(circuit: Circuit, at: datetime, lease: timedelta) -> Circuit | None:
    """The circuit with its probe let out; None where the circuit is closed or lets nothing through."""
    if circuit.state == "closed" or is_circuit_blocking(circuit, at):
        return None
    return circuit.evolve(state="half_open", until=at + lease, changes=circuit.changes + 1)


def with_failure(circuit: Circuit, changes: int, at: datetime, reason: str, setting: Setting) -> Circuit:
    """After a failure of a call let out under `changes`. Of a call from before a change of state, and where
    open, it adds nothing."""
    if circuit.changes != changes or circuit.state == "open":
        return circuit
    counted = circuit.evolve(failures=circuit.failures + 1, reason=reason)
    if circuit.state == "closed" and counted.failures < setting.threshold:
        return counted
    return _with_open_circuit(counted, at, setting)


def with_success(circuit: Circuit, changes: int) -> Circuit:
    """After a good answer: it closes what it was the probe of, and ends a row of failures."""
    if circuit.changes != changes or circuit.state == "open":
        return circuit
    return (
        with_circuit_reset(circuit) if circuit.state == "half_open" else circuit.evolve(failures=0, reason="")
    )


def with_probe_released(circuit: Circuit, changes: int, at: datetime, setting: Setting) -> Circuit:
    """After a probe that told nothing of the other side (it was cut short): the next is let out soon, after
    RELEASED_SECONDS or the cooldown where that is shorter."""
    if circuit.state != "half_open" or circuit.changes != changes:
        return circuit
    until = at + timedelta(seconds=min(RELEASED_SECONDS, setting.cooldown_seconds))
    return circuit.evolve(state="open", until=until, changes=circuit.changes + 1)


def model_silence_tells(had_ms: int, own_ms: int) -> bool:
    """Whether a model call that had `had_ms` and got no answer says that its provider hangs. `own_ms` is the
    profile's timeout. A shorter call was the run's hurry, which must not shut a provider for everybody."""
    return had_ms >= min(own_ms, TELLING_MS)


def tool_silence_tells(had_ms: int, own_ms: int) -> bool:
    """As `model_silence_tells`, for a tool: one that is known to take minutes gets a third of its own
    timeout."""
    return had_ms >= min(own_ms, max(TELLING_MS, own_ms // 3))


def with_circuit_trip(circuit: Circuit, at: datetime, reason: str, setting: Setting) -> Circuit:
    """Opened at once, whatever came before."""
    failures = max(setting.threshold, circuit.failures + 1)
    return _with_open_circuit(circuit.evolve(failures=failures, reason=reason), at, setting)


def with_circuit_reset(circuit: Circuit) -> Circuit:
    """Closed, as by a person: what was let out before changes nothing any more."""
    return circuit.evolve(state="closed", failures=0, until=None, reason="", changes=circuit.changes + 1)


def _with_open_circuit(circuit: Circuit, at: datetime, setting: Setting) -> Circuit:
    until = at + timedelta(seconds=setting.cooldown_seconds)
    return circuit.evolve(state="open", until=until, changes=circuit.changes + 1)
