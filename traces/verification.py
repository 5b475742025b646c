"""Verifying a run's trace where it is stored (R-TRACE-3, X2).

`register_check` lets an upper floor add what it keeps for a run (ledger entries, decisions); this floor knows
none of them.
"""

from collections.abc import Callable, Iterator
from uuid import UUID

from traces.core.integrity.chain import Head
from traces.core.integrity.verification import VerificationFault as VerificationFault
from traces.core.integrity.verification import faults_of, up_to
from traces.ports import get_runs_port
from traces.queries import list_missing_parts, trace_of, traced_runs

Check = Callable[[UUID], list[VerificationFault]]
_CHECKS: dict[str, Check] = {}


def register_check(name: str, check: Check) -> None:
    """Add a check that `verify_run` calls for each run, inside the tenant's context."""
    _CHECKS[name] = check


def verify_run(run_id: UUID, expected: Head | None = None) -> list[VerificationFault]:
    """Every fault of a run's trace; empty when it is whole. Inside the tenant's context.

    `expected` is the head that the run itself claims, by default as its floor says: it shows a cut end.
    """
    claimed = get_runs_port().heads(run_id).get(run_id) if expected is None else expected
    trace = trace_of(run_id)
    if expected is None and claimed is not None and get_runs_port().heads(run_id).get(run_id) != claimed:
        trace = up_to(trace, claimed)
    faults = faults_of(trace, claimed)
    if not faults and trace.events and any(event.kind == "run_finished" for event in trace.events):
        faults += [_make_missing_fault(part) for part in list_missing_parts(run_id)]
    for check in _CHECKS.values():
        faults += check(run_id)
    return faults


def _make_missing_fault(part: str) -> VerificationFault:
    return VerificationFault(
        where="Trace", number=0, column=part, sentence="a finished run's trace must hold it (R-TRACE-2)"
    )


def verify_tenant() -> Iterator[tuple[UUID, list[VerificationFault]]]:
    """Every run of the current tenant with its faults: those that have a trace, and those that ought to."""
    for run_id in sorted({*traced_runs(), *get_runs_port().heads()}):
        yield run_id, verify_run(run_id)
