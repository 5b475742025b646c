"""The machine: one event in, the transitions it causes out. Pure; same input, same bytes (R-LOOP-1).

`advance` gives the event to the current node of the run, follows the first edge of its outcome whose guard
holds, enters the next node, and continues until a node waits or the run ends. Interrupts come before nodes.
An interrupt that is requested while an effect is in flight is noted, and taken once the outcome of the
effect is recorded, so that no result is lost.
"""

from orchestrator.core.accounting.effect_cost import find_budget_shortfall
from orchestrator.core.accounting.remaining_estimate import ACCOUNT, key_of_turn, too_little
from orchestrator.core.accounting.settlement import is_effect_outcome, settle_effect
from orchestrator.core.approval import budget_extension
from orchestrator.core.approval.compensation_approval import trace_withdrawn_requests
from orchestrator.core.common.sliding_window import with_call
from orchestrator.core.compensation import saga
from orchestrator.core.domain.content_store import ContentStore
from orchestrator.core.domain.effects import CallModel, CallTool
from orchestrator.core.domain.graph import CompiledGraph, Edge, Interrupt
from orchestrator.core.domain.manifest import Manifest
from orchestrator.core.domain.run_events import (
    AnyEvent,
    GateDecided,
    GateExpired,
    Headroom,
    ModelReplied,
    Started,
    TimerFired,
)
from orchestrator.core.domain.run_state import PendingInterrupt, RunState
from orchestrator.core.engine import late_events, late_reconciliation, signal_handlers
from orchestrator.core.engine.errors import Corrupt
from orchestrator.core.engine.transition_recorder import TransitionRecorder
from orchestrator.core.llm.model_wait import is_called_up
from orchestrator.core.nodes import kind_of
from orchestrator.core.results.termination import force_run_end
from orchestrator.core.workflow.edge_guards import holds
from orchestrator.core.workflow.errors import UnexpectedEvent
from orchestrator.core.workflow.interrupts import (
    CODE_OF,
    WALL_CLOCK,
    find_due_interrupt,
    interrupt_for,
    overdue_said,
    refusal_said,
)
from orchestrator.core.workflow.node_protocol import (
    AdvanceResult,
    NodeKind,
    NodeResult,
    make_interrupt_result,
    trace_event,
)
from traces.core.events.phases import Phase
from traces.core.events.trace_events import InterruptTaken
from traces.core.integrity.chain import TraceEntry

# Raised with every change of what `advance` returns. Each manifest and each record names it: a replay under
# another version is a what-if, and a run of another version is not retried.
CORE_VERSION = 1


def advance(
    graph: CompiledGraph,
    manifest: Manifest,
    state: RunState,
    event: AnyEvent,
    headroom: Headroom,
    desk: ContentStore,
) -> AdvanceResult:
    """Answer `event`.

    Raises: ContentMissing for content not in the store, Corrupt for a broken invariant.
    """
    walker = _Walker(graph, manifest, state, event, headroom, desk)
    walker.answer(event)
    return walker.finish_walk()


class _Walker(TransitionRecorder):
    """The answer to one event."""

    _entering = False

    # -- the event
    # -----------------------------------------------------------------------------------------------

    def answer(self, event: AnyEvent) -> None:
        """Route the event: to the ended run, to the signals, or to the node that waits for it."""
        if self.state.outcome is not None:
            self._stay(*late_reconciliation.apply_late_event(self.manifest, self.state, event))
        elif isinstance(event, Started):
            self._stay(self.state, signal_handlers.trace_run_started())
            self._entering = True
        elif isinstance(event, TimerFired) and not self._timely():
            return
        elif is_effect_outcome(event) and event.effect not in self.state.pending:
            self._stay(self.state, late_events.trace_late_outcome(event))
        else:
            self._hear(event)
        self._enter_on()

    def _hear(self, event: AnyEvent) -> None:
        said: tuple[TraceEntry, ...] = ()
        asked = ""
        if is_effect_outcome(event):
            asked = self.state.pending[event.effect].profile
            self.state, settlement, said = settle_effect(self.manifest, self.state, event)
            self.settlements.append(settlement)
            if self.state.away is not None and isinstance(event, ModelReplied):
                self.state = self.state.evolve(away=None)
        heard = signal_handlers.handle_run_signal(self.state, event)
        if isinstance(event, GateDecided | GateExpired) and (
            thawed := budget_extension.resolve_budget_request(self.state, event, self.headroom.run_ceiling)
        ):
            self._apply_budget_decision(thawed)
        elif heard is not None:
            self._stay(heard.state, said + heard.said)
            self._obey(reenter=heard.reenter)
        elif isinstance(event, TimerFired) and (late := self._overdue()) is not None:
            self._interrupt(late, said)
        elif isinstance(event, TimerFired) and self.state.held:
            self._stay(self.state, ())
            self._obey(reenter=not self.state.paused)
        else:
            view = self._view(self.recorded.version + 1, asked)
            try:
                step = self._kind().on(view, event)
            except UnexpectedEvent as misfit:
                # No run may be left without a way to continue: an event that a node cannot answer ends the
                # run with that reason.
                step = make_interrupt_result(self.state, Interrupt.REPEATED_FAILURE, str(misfit))
            self._follow(step, said, entering=False)

    def _apply_budget_decision(self, thawed: budget_extension.BudgetResolution) -> None:
        """Apply the decision on more budget: continue, or take the postponed interrupt."""
        if thawed.halting is not None:
            self.state = thawed.state
            self._interrupt(thawed.halting, thawed.said, final=True)
            return
        self._stay(thawed.state.evolve(held=True), thawed.said)
        self._obey(reenter=not self.state.paused)

    def _timely(self) -> bool:
        """Return whether the run waits for this timer event; any other leaves no trace."""
        due = self.state.timer is not None and self.at >= self.state.timer
        waits = not self.state.pending
        if waits and is_called_up(self.state, called_up=self.headroom.called_up):
            return True
        return due or (self.state.held and not self.state.paused) or (waits and self._overdue() is not None)

    def _obey(self, *, reenter: bool) -> None:
        """Act after a signal, unless an effect is in flight.

        Takes a pending interrupt, or enters the node again if the run was held.
        """
        if self.state.pending:
            return
        if self.state.halting is not None:
            self._interrupt(self.state.halting, ())
        elif reenter:
            self._entering = True

    # -- walking
    # -------------------------------------------------------------------------------------------------

    def _enter_on(self) -> None:
        """Enter the current node and those that its edges lead to, until one waits or the run ends."""
        while self._entering:
            self._entering = False
            self._enter_one()

    def _enter_one(self) -> None:
        """Enter one node, unless the run is to be interrupted or held before it."""
        kind, view = self._kind(), self._view(self.recorded.version)
        if kind.starts_work and self.state.interrupt is None and not self.state.pending:
            halting = self.state.halting or find_due_interrupt(view)
            if halting is not None:
                self._interrupt(halting, ())
                return
            if self.state.paused or self.headroom.slice_over:
                self._wait(NodeResult(state=self.state.evolve(held=True)), (), entering=True)
                return
        if self.state.held:
            self.state = self.state.evolve(held=False)
            view = self._view(self.recorded.version)
        self._follow(kind.enter(view), (), entering=True)

    def _follow(self, step: NodeResult, said: tuple[TraceEntry, ...], *, entering: bool) -> None:
        """Carry out a step: a refusal, an interrupt, a wait, or an edge, whose target is entered next."""
        if self._interrupt_if_blocked(step, said):
            return
        if step.interrupt is not None:
            self.state = step.state
            self._interrupt(step.interrupt, said + step.said)
            return
        if step.anew:
            # The same rule as in `_held_back`, for work that is requested at once.
            hold = self.state.paused or self.state.halting is not None or self.headroom.slice_over
            self._stay(step.state.evolve(held=hold), said + step.said)
            self._obey(reenter=not hold)
            return
        if not entering and self._held_back(step, said):
            return
        step = self._with_counted_rates(step)
        self.effects.extend(step.effects)
        if step.outcome is None:
            self._wait(step, said, entering=entering)
            return
        edge = self._edge(step.outcome, step.state)
        guard = edge.guard.name if edge.guard is not None else None
        phase = self._kind().phases[step.outcome]
        self._move(step, guard, edge.target, phase, said + step.said)
        self._entering = True

    def _interrupt_if_blocked(self, step: NodeResult, said: tuple[TraceEntry, ...]) -> bool:
        """Return whether the step's effects may not be requested.

        They may not under an emergency stop, for a model whose provider took more than was reserved, or if
        the budget left is not enough. The run is then interrupted.
        """
        spending = [effect.reserve for effect in step.effects if effect.kind in ("call_model", "call_tool")]
        if not spending or step.state.unwinding is not None:
            # A compensating call was judged when it was requested, against its undo reserve.
            return False
        halting = self.state.halting
        if halting is not None and halting.stop and not self.state.pending:
            self._interrupt(halting, said)
            return True
        if any(isinstance(e, CallModel) and e.profile in self.state.flagged for e in step.effects):
            self._interrupt(
                PendingInterrupt(interrupt=Interrupt.DEPENDENCY_UNAVAILABLE, reason="overrun"), said
            )
            return True
        refused = find_budget_shortfall(self.state, spending, self.headroom)
        turn = key_of_turn(step.effects, self.state.usage)
        refused = refused or too_little(self.graph, self.manifest, self.state, turn)
        if refused is None:
            return False
        # No person who decides here can raise what the tenant as a whole may spend.
        final = refused.account not in ("run", ACCOUNT)
        self._interrupt(interrupt_for(refused), said + refusal_said(refused), final=final)
        return True

    def _with_counted_rates(self, step: NodeResult) -> NodeResult:
        """Return the step with its tool calls counted against their rates, whichever node requests them."""
        rates = step.state.rates
        for effect in step.effects:
            if isinstance(effect, CallTool):
                rates = with_call(rates, effect.tool, self.at)
        return step if rates is step.state.rates else step._replace(state=step.state.evolve(rates=rates))

    def _held_back(self, step: NodeResult, said: tuple[TraceEntry, ...]) -> bool:
        """Return whether the run holds back new model calls of a waiting node.

        It does if it is paused, halting or about to be given back by the worker. The node is entered again
        later, which requests the same thing.
        """
        starts = any(effect.kind == "call_model" for effect in step.effects)
        hold = self.state.paused or self.state.halting is not None or self.headroom.slice_over
        if not (starts and hold):
            return False
        # The timer has fired: if it were kept, it would wake the waiting run again and again.
        self._stay(self.state.evolve(held=True, timer=None, away=None), said)
        self._obey(reenter=False)
        return True

    def _interrupt(
        self, halting: PendingInterrupt, said: tuple[TraceEntry, ...], *, final: bool = False
    ) -> None:
        """Leave the node by the graph's interrupt edge; a second interrupt ends the run at its current node.

        An exhausted budget may freeze the run instead, unless it is `final`. A run that is undoing its
        changes is already ending, and continues with that.
        """
        if self.state.unwinding is not None:
            self._stay(self.state, said)
            self._entering = not self.state.pending
            return
        if not final and budget_extension.should_request_budget(self._view(self.recorded.version), halting):
            clock = self._clock_said(halting)
            frozen = budget_extension.request_budget(
                self._view(self.recorded.version + 1), halting, (*said, *clock)
            )
            self.effects.extend(frozen.effects)
            self._stay(frozen.state, frozen.said, frozen.effects)
            return
        if self.state.interrupt is not None:
            self._end_here(halting, said)
            return
        source, target = self.state.position, self.graph.interrupts[halting.interrupt]
        body = InterruptTaken(
            interrupt=halting.interrupt.value, reason=halting.reason, node=source, target=target
        )
        state = self.state.evolve(
            interrupt=halting.interrupt,
            frozen=None,
            reason=halting.reason,
            unfinished=self.state.still_open(),
            gates={},
            timer=None,
            queue=(),
            batch=(),
            held=False,
            expired=self.state.expired or halting.interrupt is Interrupt.EXPIRED,
        )
        outcome = f"!{halting.interrupt.value}"
        unasked = trace_withdrawn_requests(self.state, halting.reason)
        all_said = (*said, *self._clock_said(halting), trace_event(Phase.ESCALATION_CHECK, body), *unasked)
        self._move(NodeResult(state=state, outcome=outcome), None, target, Phase.ESCALATION_CHECK, all_said)
        self._entering = True

    def _end_here(self, halting: PendingInterrupt, said: tuple[TraceEntry, ...]) -> None:
        said = (*said, *self._clock_said(halting))
        view, code = self._view(self.recorded.version + 1), CODE_OF[halting.interrupt]
        step = saga.begin_compensation(view, code, halting) or force_run_end(view, code, halting)
        self.effects.extend(step.effects)
        self._stay(step.state, said + step.said, step.effects)

    def _clock_said(self, halting: PendingInterrupt) -> tuple[TraceEntry, ...]:
        """Return the trace entry of the wall clock's breaker, if it is what ends the run (R-BUDGET-12)."""
        if halting.reason != WALL_CLOCK:
            return ()
        return (overdue_said(halting, self.state.limits.get("wall_clock_seconds")),)

    def _edge(self, outcome: str, state: RunState) -> Edge:
        """Return the first edge of the outcome whose guard holds; compiled graphs always have one."""
        for edge in self.graph.edges_of(state.position, outcome):
            if edge.guard is None or holds(edge.guard, state):
                return edge
        raise Corrupt(rule=f"no edge of {state.position}.{outcome} holds")

    # -- helpers

    def _kind(self) -> NodeKind:
        if self.state.unwinding is not None:
            return saga.KIND
        return kind_of(self._node().kind)

    def _overdue(self) -> PendingInterrupt | None:
        return find_due_interrupt(self._view(self.recorded.version))
