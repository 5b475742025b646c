"""The ring: claim, recall, then commit and perform in turn until the run waits, ends, or the slice is
over."""

from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Protocol
from uuid import UUID

import structlog
from django.conf import settings
from django.db import Error, OperationalError

from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.commit.commit import CommitInDoubt, commit_run
from orchestrator.commit.read_phase import LeaseLost
from orchestrator.commit.write_phase import CommitResult
from orchestrator.core.common.run_status import TERMINAL_STATUSES, Status
from orchestrator.core.domain.run_events import TimerFired
from orchestrator.runs.actions.run_signals import has_untaken_signals, leave_late_outcomes, quarantine_run
from orchestrator.runs.gateways.job_queue import enqueue_ready, enqueue_run, let_learn
from orchestrator.tenants.queries.cross_tenant import tenant_of_run
from orchestrator.worker.commit_probe import CommitState, iterate_backoff, where_it_landed
from orchestrator.worker.commit_throttle import CommitThrottle, RunSlot
from orchestrator.worker.crash_recovery import given_up, recover_pending_effects
from orchestrator.worker.effects.effect_executor import Outcomes, Performer
from orchestrator.worker.effects.late_look_ups import look_up_after_end
from orchestrator.worker.effects.run_loader import load_claimed_run
from orchestrator.worker.heartbeat import HELD
from orchestrator.worker.leases import ClaimedLease, claim_lease, expire_lease, pause_unreadable
from orchestrator.worker.run_log import log_claim, log_lost_lease, log_release
from traces.live import publish_change_hint, publish_event_hint

POISONED = 3
# A timer further off is the sweep's: the broker would have to keep it.
HINTED_SECONDS = 60.0
log = structlog.get_logger(__name__)


class FaultPoint(Protocol):
    """Called at every yield point with its name; tests raise or wait there. In production it does nothing."""

    def __call__(self, point: str) -> None: ...


def inject_no_fault(point: str) -> None:
    """No fault."""


@dataclass(slots=True, kw_only=True)
class Worker:
    """One process's share in driving runs. `stopping` ends every slice before its next effect."""

    name: str
    performer: Performer
    fault: FaultPoint = field(default=inject_no_fault)
    way: CommitThrottle = field(default_factory=CommitThrottle)
    stopping: bool = False

    def advance(self, run_id: UUID, *, tenant_id: UUID | None = None, aside: bool = False) -> None:
        """Drive a run as far as it goes. Does nothing when another worker has it. `tenant_id`: whose it is,
        where that is known. `aside`: on a thread that is none of those that are shared out."""
        tenant_id = tenant_id or tenant_of_run(run_id)
        while tenant_id is not None and self._slice(tenant_id, run_id, aside=aside):
            pass

    def _slice(self, tenant_id: UUID, run_id: UUID, *, aside: bool) -> bool:
        """One lease's worth of work. True: signals came in while the lease was being given back, go on."""
        if self.stopping:
            return False
        with self.way.run_of(tenant_id, run_id, aside=aside) as passage:
            return self._claim_run(tenant_id, run_id, passage)

    def _claim_run(self, tenant_id: UUID, run_id: UUID, passage: RunSlot) -> bool:
        """The slice, once it is known whose run it is."""
        started = monotonic()
        with passage.step():
            claimed = claim_lease(tenant_id, run_id, self.name)
        if claimed is None:
            return False
        if Status(claimed.status) is not Status.QUEUED:
            # To go on, or to take up what a dead worker left, is no beginning.
            passage.begun()
        self.fault("claimed")
        try:
            given_back = self._drive_claimed(tenant_id, run_id, claimed, passage, started)
        except Error:
            # The store is away or refuses: the lease dies with time, for it cannot be given back now.
            raise
        except Exception as error:
            # Whatever is wrong with one run must not take its worker, or the runs behind it, along.
            log.exception(
                "run.load_failed", tenant=str(tenant_id), run=str(run_id), takeovers=claimed.takeovers
            )
            self._put_down(tenant_id, run_id, claimed, f"unworkable: {type(error).__name__}: {error}")
            return False
        if not given_back:
            expire_lease(tenant_id, run_id, self.name, claimed.fence)
        return given_back and has_untaken_signals(tenant_id, run_id)

    def _drive_claimed(
        self, tenant_id: UUID, run_id: UUID, claimed: ClaimedLease, passage: RunSlot, started: float
    ) -> bool:
        """Take the run in hand and drive it; whether a commit gave the lease back."""
        hand = load_claimed_run(tenant_id, run_id, self.name, claimed)
        log_claim(hand, started, takeovers=claimed.takeovers)
        poisoned = claimed.takeovers >= POISONED and Status(claimed.status) not in TERMINAL_STATUSES
        if poisoned:
            quarantine_run(tenant_id, run_id, claimed.takeovers)
        with HELD.hold_run(hand):
            return self._drive(hand, passage, poisoned=poisoned)

    def _put_down(self, tenant_id: UUID, run_id: UUID, claimed: ClaimedLease, reason: str) -> None:
        """Leave a run that could not be worked on: for another try, or parked after as many as kill a
        run."""
        if claimed.takeovers >= POISONED and pause_unreadable(tenant_id, run_id, claimed.fence, reason):
            publish_change_hint(tenant_id, run_id)
            return
        expire_lease(tenant_id, run_id, self.name, claimed.fence)

    def _drive(self, hand: ClaimedRun, passage: RunSlot, *, poisoned: bool) -> bool:
        """Commit and perform in turn. True when a commit gave the lease back, False when it was lost."""
        outcomes = given_up(hand) if poisoned else recover_pending_effects(hand, self.performer, self.fault)
        late = look_up_after_end(hand, self.performer)
        tick = TimerFired(at=hand.manifest.admitted_at)
        outcomes = replace(
            outcomes, events=(*outcomes.events, *late.events, tick), bodies={**outcomes.bodies, **late.bodies}
        )
        started = monotonic()
        until = started + settings.INTERLOCK_SLICE_SECONDS
        # Whoever overslept lets its lease die: the next holder repeats what is in flight, and is counted.
        while not outcomes.overslept:
            # A run that kills its workers starts nothing, whatever waits in front of the wish to pause it.
            over = poisoned or self.stopping or monotonic() > until or passage.leaves()
            committed = self._commit(hand, outcomes, passage, slice_over=over)
            if committed is None:
                log_lost_lease(hand, started, cause="taken over")
                return False
            passage.begun()
            self.fault("committed")
            if not committed.effects:
                log_release(hand, committed, started)
                self._hint(hand, committed)
                return True
            outcomes = self.performer.perform(hand, committed.effects, self.fault)
            self.fault("performed")
        log_lost_lease(hand, started, cause="overslept")
        return False

    def _hint(self, hand: ClaimedRun, committed: CommitResult) -> None:
        """Wake the run again where it waits for nobody: at once, or when its timer is due. What an ended run
        teaches is somebody else's job."""
        if committed.finished is not None:
            let_learn(hand.run, tenant=hand.tenant, workflow=hand.graph.spec.slug)
        elif hand.state.held and not hand.state.paused:
            enqueue_ready(hand.run, tenant=hand.tenant)
        elif hand.state.timer is not None and hand.state.outcome is None:
            seconds = (hand.state.timer - committed.at).total_seconds()
            if seconds <= HINTED_SECONDS:
                enqueue_run(hand.run, after=max(0.0, seconds))

    def _commit(
        self, hand: ClaimedRun, outcomes: Outcomes, passage: RunSlot, *, slice_over: bool
    ) -> CommitResult | None:
        """Commit, through a lost connection or a full store if need be.

        None: the lease is lost, and the outcomes are kept as late. A store that refuses for too long
        raises; the lease then dies, and recovery resolves what was in flight.
        """
        for wait in iterate_backoff():
            self.fault("before_commit")
            try:
                with passage.step():
                    committed = commit_run(
                        hand,
                        outcomes.events,
                        dict(outcomes.bodies),
                        slice_over=slice_over,
                        give_way=passage.give_way,
                    )
            except LeaseLost:
                break
            except CommitInDoubt as doubt:
                landing = where_it_landed(hand)
                if landing is CommitState.LOST:
                    break
                if landing is CommitState.NOT_LANDED:
                    continue
                committed = doubt.written.taken_over(hand)
            except OperationalError:
                if where_it_landed(hand) is CommitState.LOST:
                    break
                wait()
                continue
            publish_event_hint(hand.tenant, hand.run, committed.seq)
            return committed
        leave_late_outcomes(hand, outcomes.events, outcomes.bodies)
        return None
