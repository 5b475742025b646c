"""Logs what a worker does with a run, one line for each step."""

from concurrent.futures import Future
from datetime import timedelta
from time import monotonic

from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.commit.write_phase import CommitResult
from orchestrator.core.common.run_status import Status
from orchestrator.core.domain.effects import CallModel, CallTool
from orchestrator.outbound.gateways.effect_result import EffectResult
from tenancy.operation_log import Operation, log_operation

# Errors of model calls that never left this process. A tool call's outcome has a field for that.
NOT_SENT = frozenset(
    {"circuit_open", "model_busy", "refused_by_wall", "no_key", "egress_refused", "unreachable"}
)


def log_claim(hand: ClaimedRun, started: float, *, takeovers: int) -> None:
    """Log that the run was claimed and loaded; `started` is the monotonic time before the claim."""
    _log(Operation.RUN_CLAIMED, hand, _since(started), worker=hand.worker, takeovers=takeovers)


def log_release(hand: ClaimedRun, committed: CommitResult, started: float) -> None:
    """Log that the run waits or ended; `started` is the monotonic time at which its slice began.

    An ended run's time is counted from its admission.
    """
    finish = committed.finished
    if finish is None:
        _log(Operation.RUN_WAITING, hand, _since(started), status=hand.state.status.value)
        return
    operation = Operation.RUN_FAILED if finish.status is Status.FAILED else Operation.RUN_FINISHED
    took = committed.at - hand.manifest.admitted_at
    _log(operation, hand, took, status=finish.status.value, code=finish.code.value)


def log_lost_lease(hand: ClaimedRun, started: float, *, cause: str) -> None:
    """Log that this worker may not write the run any more; `started` is as for `log_release`."""
    _log(Operation.LEASE_LOST, hand, _since(started), worker=hand.worker, cause=cause)


def log_effect(
    hand: ClaimedRun, effect: CallModel | CallTool, node: str, started: float, done: "Future[EffectResult]"
) -> None:
    """Log a call that was sent and has its outcome. A call that was held back is not logged."""
    if done.cancelled() or done.exception() is not None:
        return
    fields = done.result().fields
    error = fields.get("error", "")
    if not fields.get("sent", error not in NOT_SENT):
        return
    name = {"model": effect.profile} if isinstance(effect, CallModel) else {"tool": effect.tool}
    failure = {"error": error} if error else {}
    log_operation(
        Operation.EFFECT_SENT,
        tenant=hand.tenant,
        run=hand.run,
        node=node,
        took=_since(started),
        effect=effect.id,
        **name,
        **failure,
    )


def _since(started: float) -> timedelta:
    return timedelta(seconds=monotonic() - started)


def _log(operation: Operation, hand: ClaimedRun, took: timedelta, **details: str | int) -> None:
    log_operation(operation, tenant=hand.tenant, run=hand.run, node=hand.state.position, took=took, **details)
