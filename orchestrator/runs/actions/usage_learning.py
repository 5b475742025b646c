"""Learn from the usage of a successful run for the runs that follow (R-BUDGET-4)."""

from collections.abc import Iterator
from decimal import Decimal
from uuid import UUID

import orjson

from orchestrator.core.accounting.remaining_estimate import key_of
from orchestrator.core.admission.usage_statistics import (
    FinishedRun,
    PassedPlace,
    expected_of,
    kind_of_goal,
    subject_of,
    with_run,
)
from orchestrator.core.common.run_status import ENDINGS, TerminalClass, TerminalCode
from orchestrator.core.domain.effects import Amounts
from orchestrator.core.domain.manifest import UsageStatistics
from orchestrator.runs.models.run import Intent, ManifestRow, Run
from orchestrator.runs.models.usage_estimate import Expectation
from orchestrator.runs.queries.state_loader import graph_of, manifest_of, pins_of
from orchestrator.tenants.queries.cross_tenant import tenant_of_run
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import take_advisory_lock, tenant_transaction
from traces.models import Event, Record

# A longer run is not representative: nothing is learned from it.
LONGEST = 3_000
PLACES = 64


def learn_from(run_id: UUID) -> bool:
    """Add a successful run's usage to the statistics of its subject and return whether it was added.

    A repeated call changes nothing. Outermost verb: owns the transaction.
    """
    tenant_id = tenant_of_run(run_id)
    if tenant_id is None:
        return False
    with tenant_transaction(tenant_id):
        run = Run.objects.get(id=run_id)
        code = TerminalCode(run.terminal_code) if run.terminal_code else None
        whole = code is not None and ENDINGS[code].terminal_class is TerminalClass.COMMIT
        # A retry began in the middle, so it covers only a part of the workflow.
        if not whole or run.record_number > LONGEST or run.retry_of_id is not None or _failed_over(run.id):
            return False
        _update_usage_statistics(tenant_id, run)
        return True


def _failed_over(run_id: UUID) -> bool:
    """Return whether another model took over: the run is then no measure of the pinned model's usage."""
    return Event.objects.filter(run_id=run_id, kind="model_failed_over").exists()


def _update_usage_statistics(tenant_id: UUID, run: Run) -> None:
    subject = subject_of_run(run)
    # Two runs that end together are processed one after the other.
    take_advisory_lock(f"{tenant_id}:{subject}")
    row = Expectation.objects.filter(graph=subject).first()
    known = tuple(FinishedRun.model_validate(one) for one in row.lived) if row is not None else ()
    lived = with_run(known, lived_of(run))
    Expectation.objects.update_or_create(
        tenant_id=tenant_id,
        graph=subject,
        defaults={
            "workflow": run.workflow,
            "lived": [one.model_dump(mode="json") for one in lived],
            "expected": expected_of(lived).model_dump(mode="json"),
            "learnt_at": database_now(),
        },
    )


def subject_of_run(run: Run) -> str:
    """Return the subject whose statistics a run contributes to, from its pins.

    Call in the tenant's context.
    """
    pinned = ManifestRow.objects.values_list("pins_digest", flat=True).get(id=run.id)
    graph = graph_of(run.tenant_id, run.workflow_version_id)
    return subject_of(graph, pins_of(run.tenant_id, pinned))


def expected_for(subject: str) -> UsageStatistics:
    """Return the expected usage of a run of this subject admitted now. Call in the tenant's context.

    See core/admission/usage_statistics.py for subjects.
    """
    found = Expectation.objects.filter(graph=subject).values_list("expected", flat=True).first()
    return UsageStatistics() if found is None else UsageStatistics.model_validate(found)


def lived_of(run: Run) -> FinishedRun:
    """Return the places that a run passed, from its intents, with the usage at each, from its records."""
    usage = dict(_usage_by_record(run.id))
    asked = Intent.objects.filter(run_id=run.id).order_by("record", "id")
    rows = asked.values_list("record", "kind", "tool", "body", "effect")
    passed: dict[str, PassedPlace] = {}
    for record, kind, tool, body, effect in rows[:PLACES]:
        used = usage[record]
        name = orjson.loads(bytes(body))["node"] if kind == "call_model" else tool
        key = key_of("m" if kind == "call_model" else "t", name, used)
        passed.setdefault(effect, PassedPlace(key=key, used=used))
    body, pinned = ManifestRow.objects.values_list("body", "pins_digest").get(id=run.id)
    goal = manifest_of(bytes(body), pins_of(run.tenant_id, pinned)).goal
    return FinishedRun(
        run=str(run.id), passed=tuple(passed.values()), used=usage[run.record_number],
        kind=kind_of_goal(str(run.tenant_id), goal),
    )  # fmt: skip


def _usage_by_record(run_id: UUID) -> Iterator[tuple[int, Amounts]]:
    """Yield the total usage after each record, from the patches of the state."""
    used: Amounts = {}
    for number, body in Record.objects.filter(run_id=run_id).order_by("number").values_list("number", "body"):
        change = orjson.loads(bytes(body))["patch"].get("usage", {})
        used = {**used, **{name: Decimal(amount) for name, amount in change.get("put", {}).items()}}
        yield number, used
