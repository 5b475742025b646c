"""Commit a run once (docs/ring.md): read the input, walk, write everything, reserve the money last.

A refused reservation or a void grant rolls the transaction back. The walk is then repeated with that
knowledge, so the trace never records an intent that was not committed. A refused reservation thereby leaves
the grant unused.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Literal, cast

from django.db import OperationalError

from orchestrator.commit import read_phase
from orchestrator.commit.claimed_run import RENDERED, ClaimedRun
from orchestrator.commit.read_phase import (
    LOOK_UP,
    CommitInput,
    InputsChanged,
    RetryContext,
    build_headroom,
    policy_in_force,
    read_opened,
    still_allowed,
    stop_for,
    without_look_ups,
)
from orchestrator.commit.signal_translation import translate_signal
from orchestrator.commit.write_phase import (
    CommitPlan,
    CommitResult,
    GrantVoid,
    LineRefused,
    PreparedCommit,
    WrittenRows,
    write_commit,
)
from orchestrator.core.common.errors import ContentMissing, ContentSought
from orchestrator.core.common.run_status import Status
from orchestrator.core.domain.content_store import ContentStore
from orchestrator.core.domain.effects import AskApproval, CallTool
from orchestrator.core.domain.run_events import AnyEvent, Headroom, Started, StopAsked
from orchestrator.core.engine.errors import Corrupt
from orchestrator.core.engine.machine import advance
from orchestrator.core.workflow.node_protocol import AdvanceResult
from orchestrator.llm.actions.model_queue import is_called_up
from tenancy.db.pipeline import PreparedStatementsLost
from tenancy.db.statement_batch import RowRefused
from tenancy.db.tenant_context import raw_cursor, tenant_reading, tenant_transaction
from traces.core.canonical import canonical_model
from traces.core.events.trace_events import BudgetExtended
from traces.core.integrity.chain import UnchainedTransition
from traces.core.state_patch import diff_states
from traces.queries import load_payloads

TRIES = 12
# SQLSTATE classes of lost connections and of servers that shut down.
LOST = ("08", "57")


class CommitInDoubt(Exception):
    """The connection was lost inside COMMIT: it landed or it did not; `written` is what would then hold."""

    def __init__(self, written: WrittenRows) -> None:
        super().__init__("commit in doubt")
        self.written = written


def _skip_yield() -> None:
    """Do nothing: no other computation waits for this thread."""


def commit_run(
    hand: ClaimedRun,
    outcomes: Sequence[AnyEvent],
    bodies: dict[str, bytes],
    *,
    slice_over: bool = False,
    give_way: Callable[[], None] = _skip_yield,
) -> CommitResult:
    """Commit the outcomes of the last effects with every waiting signal. Outermost verb: owns the
    transaction.

    `outcomes` carry a provisional time that the commit's own replaces; `bodies` is their content by digest.
    `give_way` is called between computing parts, while only the run's row is locked.

    Raises: LeaseLost if the run no longer belongs to this worker (nothing is written then), CommitInDoubt if
    the connection was lost inside COMMIT. With any other OperationalError certainly nothing was written.
    """
    learnt = RetryContext()
    for _ in range(TRIES):
        written: WrittenRows | None = None
        draft: PreparedCommit | None = None
        try:
            with tenant_reading(hand.tenant, read_phase.OPEN, hand.keys) as rows:
                opened = without_look_ups(read_opened(hand, rows), outcomes)
                hand.circuits = opened.circuits
                called = hand.state.away is not None and is_called_up(hand.run)
                room = build_headroom(hand, opened, learnt, slice_over=slice_over, called_up=called)
                draft = _prepare_commit(hand, outcomes, bodies, opened, room, give_way)
                written = draft.written
                draft.land(hand)
        except OperationalError as error:
            if written is None or _surely_undone(error):
                raise
            raise CommitInDoubt(written) from error
        except RowRefused:
            assert draft is not None
            with tenant_transaction(hand.tenant):
                learnt.refusal(draft.refusal(raw_cursor()))
        except PreparedStatementsLost:
            continue
        except LineRefused as refused:
            learnt.refusal(refused.refusal)
        except InputsChanged as moved:
            moved.teach(learnt)
        except GrantVoid as void:
            learnt.void = {**(learnt.void or {}), void.request: void.reason}
        else:
            assert written is not None
            return written.taken_over(hand)
    raise Corrupt(rule="a commit settles within its tries")


def _surely_undone(error: OperationalError) -> bool:
    """Return whether the server itself rejected the commit, so that certainly nothing was written.

    A connection that was lost or ended leaves the result of its COMMIT unknown.
    """
    state: str = getattr(error.__cause__, "sqlstate", None) or ""
    return bool(state) and not state.startswith(LOST)


def _prepare_commit(
    hand: ClaimedRun,
    outcomes: Sequence[AnyEvent],
    bodies: dict[str, bytes],
    opened: CommitInput,
    room: Headroom,
    give_way: Callable[[], None] = _skip_yield,
) -> PreparedCommit:
    script = CommitPlan(hand=hand, opened=opened, bodies=dict(bodies))
    for event in _collect_commit_events(hand, opened, outcomes, script):
        if script.state.outcome is not None and event.kind in ("started", "timer_fired"):
            continue
        give_way()
        _apply_event(script, event, room)
    give_way()
    starting = hand.state.status is Status.QUEUED
    acting = any(isinstance(effect, CallTool) and effect.mutating for effect in script.effects)
    if acting or any(isinstance(effect, AskApproval) for effect in script.effects):
        policy_in_force(hand, opened.stops, room.policy)
    if starting or acting:
        still_allowed(hand, room.missing_scopes)
    return write_commit(script, raw_cursor())


def _collect_commit_events(
    hand: ClaimedRun, opened: CommitInput, outcomes: Sequence[AnyEvent], script: CommitPlan
) -> list[AnyEvent]:
    """Collect the commit's events in order: signals before outcomes.

    A request to the run is thereby recorded before the next effect is chosen.
    """
    events: list[AnyEvent] = []
    stop = stop_for(hand, opened.stops)
    halting = hand.state.halting
    if stop is not None and hand.state.outcome is None and not (halting is not None and halting.stop):
        scope = cast("Literal['global', 'tenant', 'workflow']", stop.scope)
        events.append(StopAsked(at=opened.at, scope=scope, target=stop.target, reason=stop.reason))
    for signal in opened.signals:
        if signal.kind == LOOK_UP:
            # Its result is among the outcomes.
            continue
        event, content = translate_signal(hand, signal, opened.at)
        script.bodies.update(content)
        events.append(event)
    if hand.state.status is Status.QUEUED:
        events.append(Started(at=opened.at))
    events.extend(outcome.evolve(at=opened.at) for outcome in outcomes)
    return events


def _apply_event(script: CommitPlan, event: AnyEvent, room: Headroom) -> None:
    """Walk one event and link its transitions to the chain.

    Missing content is fetched and the walk is repeated.
    """
    hand = script.hand
    absent: set[str] = set()
    while True:
        if len(hand.rendered) > RENDERED:
            hand.rendered.clear()
        desk = ContentStore(hand.salt, hand.shelf.behind(script.bodies), hand.rendered, absent)
        try:
            walk = advance(hand.graph, hand.manifest, script.state, event, room, desk)
            break
        except ContentMissing as missing:
            wanted: tuple[str, ...] = missing.data["digests"]
            found = load_payloads(hand.run, wanted)
            if len(found) < len(wanted) and not isinstance(missing, ContentSought):
                raise
            absent.update(digest for digest in wanted if digest not in found)
            hand.shelf.keep(found)
    script.extended.extend(_collect_budget_extensions(walk))
    event_digest = desk.put(canonical_model(event))
    if not walk.transitions:
        return
    moves = [
        UnchainedTransition(
            source=step.source,
            outcome=step.outcome,
            guard=step.guard,
            target=step.target,
            phase=step.phase,
            patch=diff_states(step.before, step.after),
            said=step.said,
            effects=step.effects,
        )
        for step in walk.transitions
    ]
    script.add(walk, moves, event_digest, desk.made, room)


def _collect_budget_extensions(walk: AdvanceResult) -> list[tuple[Mapping[str, Decimal], str]]:
    """Return the granted amounts in the walk with their grantors. The ledger is raised by these alone."""
    said = (word.body for move in walk.transitions for word in move.said)
    return [(body.amounts, body.by) for body in said if isinstance(body, BudgetExtended)]
