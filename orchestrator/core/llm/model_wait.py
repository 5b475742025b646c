"""Waiting for a model that cannot be called now (R-TOOL-22, R-BUDGET-13).

A run waits for the end of an outage: when its attempts are used up and no other profile takes over, the run
waits as long as its workflow's patience lasts, without a worker and without spending working time. While the
model's circuit is closed, the run retries by its own timer. Behind an open circuit, the run is woken by the
one probe or by the successful reply that closed the circuit. If a model takes a limited number of calls at
once, the run waits in line, without a time limit. An interactive run does not wait for an outage. Failures of
a scripted model belong to the scenario, so the run does not wait for them either.
"""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal, NamedTuple

from orchestrator.core.common.backoff import delay_ms
from orchestrator.core.common.goal import Mode
from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.domain.effects import SetTimer
from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.core.domain.manifest import Manifest
from orchestrator.core.domain.run_events import ModelFailed, Recovered
from orchestrator.core.domain.run_state import ModelWait, RunState
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from traces.core.events.phases import Phase
from traces.core.events.trace_events import BreakerTripped, ModelAwaited
from traces.core.integrity.chain import TraceEntry

# No effect of a node has this ordinal, so a wait cannot be mistaken for one.
ORDINAL = 96
BUSY, CIRCUIT = "model_busy", "circuit_open"
# Causes that pass: the provider is unreachable or unable to answer. Waiting does not help otherwise.
OUTAGE = frozenset(
    {"unreachable", "timeout", "server_error", "unavailable", "cut_off", "rate_limited", CIRCUIT}
)
# A run in line is woken when its turn comes. If that signal is missed, the run checks after this time.
IN_LINE = timedelta(minutes=10)


class FailedCall(NamedTuple):
    """One failed call: profile, effect, cause, and the retry delay that the provider asked for."""

    profile: ModelProfile
    effect: str
    cause: str
    wish_ms: int | None = None


def has_patience(graph: CompiledGraph, manifest: Manifest) -> bool:
    """Return whether a run waits for a model that is unavailable."""
    return manifest.goal.mode is not Mode.INTERACTIVE and graph.spec.model_patience_seconds > 0


def refused_by_us(event: ModelFailed | Recovered) -> bool:
    """Return whether we refused to send the call; such a call does not count as an attempt."""
    return isinstance(event, ModelFailed) and event.error in (BUSY, CIRCUIT)


def in_line(
    view: NodeContext, state: RunState, failed: FailedCall, said: tuple[TraceEntry, ...]
) -> NodeResult:
    """Wait in line for the model.

    Working time continues only for an interactive run, in which a person waits too.
    """
    rests = view.manifest.goal.mode is not Mode.INTERACTIVE
    away = _build_model_outage(view, state, failed, "line", None, rests=rests)
    due = view.at + IN_LINE
    if not rests and (left := view.clock_left_ms()) is not None:
        due = min(due, view.at + timedelta(milliseconds=max(1, left)))
    return _schedule_model_wait(view, state, away, failed, due, said)


def wait_for_model(
    view: NodeContext,
    state: RunState,
    event: ModelFailed | Recovered,
    failed: FailedCall,
    said: tuple[TraceEntry, ...],
) -> NodeResult | None:
    """Wait until the model is available again, or return None if the run does not wait.

    The run does not wait if the failure is not a passing one, or if the run has no patience or none left.
    """
    if failed.profile.provider == "scripted" or not _is_outage(event):
        return None
    until = _compute_patience_end(view, state)
    if until is None or view.at >= until:
        return None
    if failed.cause == CIRCUIT:
        away = _build_model_outage(view, state, failed, "circuit", until)
        return _schedule_model_wait(view, state, away, failed, until, said)
    wait = delay_ms(state.counters.model_attempts, failed.effect, failed.wish_ms)
    due = min(until, view.at + timedelta(milliseconds=wait))
    return _schedule_model_wait(
        view, state, _build_model_outage(view, state, failed, "timer", until), failed, due, said
    )


def _is_outage(event: ModelFailed | Recovered) -> bool:
    return isinstance(event, ModelFailed) and event.transient and event.error in OUTAGE


def _compute_patience_end(view: NodeContext, state: RunState) -> datetime | None:
    """Return the end of the run's patience, which began with the outage, or None if the run has none."""
    if not has_patience(view.graph, view.manifest):
        return None
    away = state.away
    if away is not None and away.until is not None:
        return away.until
    return view.at + timedelta(seconds=view.graph.spec.model_patience_seconds)


def _build_model_outage(
    view: NodeContext,
    state: RunState,
    failed: FailedCall,
    by: Literal["timer", "circuit", "line"],
    until: datetime | None,
    *,
    rests: bool = True,
) -> ModelWait:
    before = state.away
    since = view.at if before is None else before.since
    # Keep the provider's last failure as the cause: an open circuit is only a consequence of that failure.
    known = before.cause if before is not None and failed.cause == CIRCUIT else failed.cause
    return ModelWait(since=since, profile=failed.profile.name, cause=known, by=by, until=until, rests=rests)


def _schedule_model_wait(
    view: NodeContext,
    state: RunState,
    away: ModelWait,
    failed: FailedCall,
    due: datetime,
    said: tuple[TraceEntry, ...],
) -> NodeResult:
    body = ModelAwaited(
        effect=failed.effect, profile=away.profile, cause=away.cause, by=away.by,
        since=away.since.isoformat(), until="" if away.until is None else away.until.isoformat(),
    )  # fmt: skip
    timer = SetTimer(id=view.effect_id(ORDINAL, 0), due=due)
    waiting = state.evolve(away=away, timer=due)
    return NodeResult(
        state=waiting, said=(*said, trace_event(Phase.ESCALATION_CHECK, body)), effects=(timer,)
    )


class WaitResult(NamedTuple):
    """The next action of a waiting node: wait on (`state` None), call in `state`, or give up (`over`)."""

    state: RunState | None = None
    over: bool = False


def resume_model_wait(view: NodeContext) -> WaitResult:
    """Decide how a node that waits to call its model continues when a timer has fired.

    A paused run does not lose its patience: it calls again when a person resumes it.
    """
    state, away = view.state, view.state.away
    called = is_called_up(state, called_up=view.headroom.called_up)
    if not called and (state.timer is None or view.at < state.timer):
        return WaitResult()
    if away is None:
        return WaitResult(state)
    if away.until is not None and view.at >= away.until and not called and not state.paused:
        return WaitResult(over=True)
    # The turn of a run in line has come, so the run works again. An outage lasts until the model answers.
    return WaitResult(state.evolve(away=None) if away.by == "line" else state)


def is_called_up(state: RunState, *, called_up: bool) -> bool:
    """True if the event that the run waits for, other than a time, has occurred.

    A run whose probe failed waits both for its own timer and behind the circuit: the next probe does not have
    to wait for the timer.
    """
    return called_up and state.away is not None


def given_up_said(state: RunState, cause: str) -> TraceEntry:
    """Return the breaker event of a run that stops calling the model (R-BUDGET-12).

    The breaker is the circuit if no call was ever let through, else the retry storm.
    """
    away, attempts = state.away, state.counters.model_attempts
    if not attempts:
        subject = "" if away is None else away.profile
        return trace_event(
            Phase.ESCALATION_CHECK, BreakerTripped(breaker="circuit", reason="open", subject=subject)
        )
    tripped = BreakerTripped(
        breaker="retry_storm", reason=cause, limit=Decimal(attempts), actual=Decimal(attempts + 1)
    )
    return trace_event(Phase.ESCALATION_CHECK, tripped)
