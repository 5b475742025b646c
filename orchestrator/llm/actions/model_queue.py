"""The operator's queues in front of models, as rows that all workers share (R-TOOL-22).

The next run is chosen under one lock per queue, in the database (call_up): the bound holds over all
processes, and a dead worker's call leaves with its run's lease. The message that wakes a called run may be
lost; the sweep then finds the run.
"""

from dataclasses import dataclass
from uuid import UUID, uuid5

import structlog
from django.db import Error, connection

from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.tools.circuit_breaker import Kind
from orchestrator.outbound.actions import SPACE, circuit_id
from orchestrator.runs.gateways.job_queue import enqueue_run
from orchestrator.tenants.queries.cross_tenant import called_up_runs
from tenancy.db.tenant_context import raw_cursor, tenant_transaction

log = structlog.get_logger(__name__)
GRACE_SECONDS = 10.0
CALLED_AT_ONCE = 100
STAND = """
INSERT INTO orchestrator_modelturn AS t (id, tenant_id, place, stage, fence, most, since)
VALUES (%(run)s, %(tenant)s, %(place)s, %(stage)s, %(fence)s, %(most)s, clock_timestamp())
ON CONFLICT (id) DO UPDATE SET
  stage = EXCLUDED.stage, place = EXCLUDED.place, fence = EXCLUDED.fence, most = EXCLUDED.most, until = NULL,
  since = CASE WHEN t.place = EXCLUDED.place AND t.stage = EXCLUDED.stage THEN t.since
               ELSE EXCLUDED.since END
WHERE NOT (t.place = EXCLUDED.place AND t.stage = 'called' AND t.until > clock_timestamp())"""
CALL_UP = "SELECT call_up(%(place)s)"
TAKE = """
UPDATE orchestrator_modelturn SET stage = 'calling', fence = %(fence)s, since = clock_timestamp(),
  until = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE id = %(run)s AND place = %(place)s AND stage = 'called' AND until > clock_timestamp()
RETURNING id"""
LEAVE = """
DELETE FROM orchestrator_modelturn
WHERE id = %(run)s AND (fence = %(fence)s AND stage = 'calling' OR stage = 'away')
RETURNING place"""
CALLED_UP = """
SELECT 1 FROM orchestrator_modelturn w LEFT JOIN orchestrator_circuitrow c ON c.id = w.place
 WHERE w.id = %(run)s
   AND (w.stage = 'called' AND w.until > clock_timestamp()
        OR w.stage = 'away' AND (c.id IS NULL OR c.state = 'closed' OR c.until <= clock_timestamp()))"""
FORGET = "DELETE FROM orchestrator_modelturn WHERE id = %s"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLines:
    """The queue places of one run, under its worker's fence.

    `waits`: the run has waited for its model before this call. `patient`: the run waits for an unavailable
    model.
    """

    tenant: UUID
    run: UUID
    fence: int
    waits: bool = False
    patient: bool = True

    def enter(self, subject: str, most: int, *, own: bool, timeout_ms: int) -> bool:
        """Join the queue and return whether the run may call now, as the protocol requires.

        If the database does not respond, no run may call.
        """
        place = line_id(self.tenant if own else None, subject)
        values = self._values(place, most=most, stage="queued") | {
            "seconds": timeout_ms / 1000 + GRACE_SECONDS
        }
        try:
            with tenant_transaction(self.tenant):
                cursor = raw_cursor()
                cursor.execute(STAND, values)
                called = [row[0] for row in cursor.execute(CALL_UP, values).fetchall()]
                taken = cursor.execute(TAKE, values).fetchone() is not None
        except Error as error:
            log.warning("line.unreachable", error=type(error).__name__)
            return False
        _wake_all(called, but=self.run)
        return taken

    def leave(self) -> None:
        """Leave the queue and wake the next runs, as the protocol requires.

        If the database is unavailable, the call leaves with the run's lease.
        """
        called: list[UUID] = []
        try:
            with tenant_transaction(self.tenant):
                cursor = raw_cursor()
                left = cursor.execute(LEAVE, {"run": self.run, "fence": self.fence}).fetchone()
                if left is not None:
                    called = [row[0] for row in cursor.execute(CALL_UP, {"place": left[0]}).fetchall()]
        except Error as error:
            log.warning("line.not_left", error=type(error).__name__)
        finally:
            connection.close()
        _wake_all(called)

    def stand_behind(self, kind: Kind, subject: str) -> None:
        """Register the run as waiting for an unavailable model or tool, as the protocol requires.

        If the database is unavailable, the run's own timer wakes the run. A run without patience does not
        wait.
        """
        if not self.patient:
            return
        place = circuit_id(None if kind == "model" else self.tenant, kind, subject)
        try:
            with tenant_transaction(self.tenant):
                raw_cursor().execute(STAND, self._values(place, most=1, stage="away"))
        except Error as error:
            log.warning("line.not_noted", error=type(error).__name__)

    def stand_behind_again(self, kind: Kind, subject: str) -> None:
        """Register the run as waiting again, as the protocol requires.

        A run that has not waited before tries again by its own timer.
        """
        if self.waits:
            self.stand_behind(kind, subject)

    def call_all(self) -> None:
        """Wake the runs whose model is available again, as the protocol requires."""
        try:
            _wake_all(called_up_runs(CALLED_AT_ONCE))
        except Error as error:
            log.warning("line.not_called", error=type(error).__name__)
        finally:
            connection.close()

    def _values(self, place: UUID, *, most: int, stage: str) -> dict[str, object]:
        return {
            "run": self.run, "tenant": self.tenant, "place": place, "stage": stage, "fence": self.fence,
            "most": most,
        }  # fmt: skip


def leaves_line(hand: ClaimedRun, after: RunState, *, asks: bool) -> bool:
    """Return whether a commit takes the run out of the place where it waits for a model.

    A run leaves if it no longer waits and asks no model, if another model has taken over, or if it has ended.
    """
    if after.outcome is not None and hand.state.outcome is None:
        bounded = any(profile.at_once is not None for profile in hand.manifest.pins.profiles)
        return bounded or hand.state.away is not None
    if after.stood_down != hand.state.stood_down:
        # Another model is asked from here on.
        return True
    return not asks and hand.state.away is not None and after.away is None


def line_id(owner: UUID | None, subject: str) -> UUID:
    """Return the id of a queue, derived from the model's owner (None: the operator) and its location."""
    return uuid5(SPACE, f"{owner or ''} line {subject}")


def is_called_up(run_id: UUID) -> bool:
    """Return whether the model that a run waits for takes its call now. Call in the tenant's context."""
    return raw_cursor().execute(CALLED_UP, {"run": run_id}).fetchone() is not None


def _wake_all(runs: list[UUID], *, but: UUID | None = None) -> None:
    for run in runs:
        if run != but:
            enqueue_run(run)
