"""Waiting for a model that cannot be asked just now (R-TOOL-22, R-BUDGET-13).

An outage is waited out: once its attempts are used up and nobody takes over, a run keeps its place for its
workflow's patience, holds no worker and spends no working time. It looks again by its own timer as long as
the model's circuit is closed; behind an open one it is called up, by the one probe or by the good answer that
closed it. In front of a model that takes so many calls at once it waits in line, for as long as that takes.
A person who waits in front of a screen does not wait for an outage, and a scenario's failures are meant.
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
from orchestrator.core.domain.run_state import Away, RunState
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from traces.core.events.phases import Phase
from traces.core.events.trace_events import BreakerTripped, ModelAwaited
from traces.core.integrity.chain import TraceEntry

# Runs admitted under an earlier core counted the refusals of our own circuit, and gave up at once.
SINCE = 11
# No effect of a node has this ordinal: a wait is never taken for one of them.
ORDINAL = 96
BUSY, CIRCUIT = "model_busy", "circuit_open"
# The other side is not there, or not able to; anything else is no better in a while.
OUTAGE = frozenset(
    {"unreachable", "timeout", "server_error", "unavailable", "cut_off", "rate_limited", CIRCUIT}
)
# In line a run is called up. Should nobody do so, it looks for itself.
IN_LINE = timedelta(minutes=10)


class Failed(NamedTuple):
    """One failed call: the profile that was asked, the effect, why, and what the other side wished."""

    profile: ModelProfile
    effect: str
    cause: str
    wish_ms: int | None = None


def waits_here(view: NodeContext) -> bool:
    """Whether runs of this core wait for a model at all."""
    return view.manifest.core_version >= SINCE


def has_patience(graph: CompiledGraph, manifest: Manifest) -> bool:
    """Whether a run waits for a model that is away."""
    return manifest.goal.mode is not Mode.INTERACTIVE and graph.spec.model_patience_seconds > 0


def refused_by_us(view: NodeContext, event: ModelFailed | Recovered) -> bool:
    """Whether the call never went out, by our own word: it counts as nothing."""
    return waits_here(view) and isinstance(event, ModelFailed) and event.error in (BUSY, CIRCUIT)


def in_line(view: NodeContext, state: RunState, failed: Failed, said: tuple[TraceEntry, ...]) -> NodeResult:
    """Wait in the line in front of the model. Its working time goes on only for somebody who waits with
    it."""
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
    failed: Failed,
    said: tuple[TraceEntry, ...],
) -> NodeResult | None:
    """Wait for the model to come back; None where this failure is not one that passes, where the run's
    patience is over, or where it has none."""
    if not waits_here(view) or failed.profile.provider == "scripted" or not _is_outage(event):
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
    """When the patience ends: it began with the outage. None for a run that has none."""
    if not has_patience(view.graph, view.manifest):
        return None
    away = state.away
    if away is not None and away.until is not None:
        return away.until
    return view.at + timedelta(seconds=view.graph.spec.model_patience_seconds)


def _build_model_outage(
    view: NodeContext,
    state: RunState,
    failed: Failed,
    by: Literal["timer", "circuit", "line"],
    until: datetime | None,
    *,
    rests: bool = True,
) -> Away:
    before = state.away
    since = view.at if before is None else before.since
    # Why it is away is what the other side did last; that our circuit is open only follows from it.
    known = before.cause if before is not None and failed.cause == CIRCUIT else failed.cause
    return Away(since=since, profile=failed.profile.name, cause=known, by=by, until=until, rests=rests)


def _schedule_model_wait(
    view: NodeContext,
    state: RunState,
    away: Away,
    failed: Failed,
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


class Woken(NamedTuple):
    """What a waiting node does: stay (None), ask in this state, or give up."""

    state: RunState | None = None
    over: bool = False


def resume_model_wait(view: NodeContext) -> Woken:
    """What follows for a node that waits to ask its model, now that a time has come. A paused run does not
    lose its patience: it asks anew once somebody lets it go on."""
    state, away = view.state, view.state.away
    called = is_called_up(state, called_up=view.headroom.called_up)
    if not called and (state.timer is None or view.at < state.timer):
        return Woken()
    if away is None:
        return Woken(state)
    if away.until is not None and view.at >= away.until and not called and not state.paused:
        return Woken(over=True)
    # In line its turn has come, so it works again; what was away is away until it answers.
    return Woken(state.evolve(away=None) if away.by == "line" else state)


def is_called_up(state: RunState, *, called_up: bool) -> bool:
    """True if what the run waits for, other than a time, has come. A run whose probe failed waits for its own
    time and behind the circuit: the next probe need not wait for that time."""
    return called_up and state.away is not None


def given_up_said(state: RunState, cause: str) -> TraceEntry:
    """The breaker of a run that asks no more: the circuit where it was never let through, else the storm of
    attempts (R-BUDGET-12)."""
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
