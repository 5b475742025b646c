"""Verification that a retry began where its trace records it (R-TRACE-3's share, R-SESS-9).

The trace is compared with the run's own row, and with the record of the previous run if that is kept.
"""

from contextlib import suppress
from uuid import UUID

from orchestrator.runs.models.run import Run
from traces.core.events.trace_events import RunRetried
from traces.models import Event, Record
from traces.verification import VerificationFault, register_check


def check_run(run_id: UUID) -> list[VerificationFault]:
    """List every fault in a run's claims about the run it retries. Runs in the tenant's context."""
    run = Run.objects.filter(id=run_id).only("retry_of_id", "retry_record", "retried_by").first()
    if run is None:
        return []
    # The event is in the first record, or the run is no retry.
    said = _find_retry_event(run_id)
    if said is None:
        return (
            [] if run.retry_of_id is None else [_build_fault("retry_of_id", "its trace speaks of no retry")]
        )
    stands = {"retry_of_id": run.retry_of_id, "retry_record": run.retry_record, "retried_by": run.retried_by}
    spoken = {"retry_of_id": UUID(said.run), "retry_record": said.record, "retried_by": UUID(said.by)}
    faults = [
        _build_fault(column, "it is not what the trace said when the run was begun")
        for column, value in stands.items()
        if value != spoken[column]
    ]
    known = Record.objects.filter(run_id=said.run, number=said.record).values_list("hash", flat=True).first()
    if known is not None and bytes(known).hex() != said.record_hash:
        faults.append(
            VerificationFault(where=f"Record of {said.run}", number=said.record, column="hash",
                  sentence=f"run {run_id} began after another one")
        )  # fmt: skip
    return faults


def _find_retry_event(run_id: UUID) -> RunRetried | None:
    """Return the run's retry event, or None if it has none or its body cannot be parsed.

    An unreadable body is a fault of the trace and is reported there.
    """
    body = Event.objects.filter(run_id=run_id, kind="run_retried").values_list("body", flat=True).first()
    with suppress(ValueError):
        return None if body is None else RunRetried.model_validate_json(bytes(body))
    return None


def _build_fault(column: str, sentence: str) -> VerificationFault:
    return VerificationFault(where="Run", number=0, column=column, sentence=sentence)


register_check("retries", check_run)
