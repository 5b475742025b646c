"""Flagging drift in the figures of ended runs and notifying administrators (R-BUDGET-14).

A flag is open from the time a drift is detected until the drift is gone. Administrators are notified again
about the same figure only once as many runs have ended as were compared then: the same change stays in the
compared windows for that long and may appear and disappear by chance at the threshold. A drift that
persists beyond that is flagged again, and administrators are notified.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from budgets.core.statistics.distribution import Drift
from budgets.models import DriftFlag, RunFigures
from budgets.queries.expenses import METRICS, get_usage_spreads, workflows_run
from tenancy.core.event_kinds import FIGURES_DRIFT
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tenancy.notifications.outgoing import tell_people
from tenancy.queries import all_tenants

LATELY: Final = timedelta(days=7)
_FLAGGED: Final = """
INSERT INTO budgets_driftflag (id, tenant_id, workflow, metric, was, is_now, runs, told, at, ended_at)
VALUES (%(id)s, %(tenant)s, %(workflow)s, %(metric)s, %(was)s, %(is_now)s, %(runs)s, %(told)s, %(at)s, NULL)
ON CONFLICT (tenant_id, workflow, metric) WHERE ended_at IS NULL DO NOTHING RETURNING id"""


def flag_drifts() -> int:
    """Check every tenant and return how many figures were flagged."""
    return sum(flag_drifts_of(tenant_id) for tenant_id in all_tenants())


def flag_drifts_of(tenant_id: UUID) -> int:
    """Flag drifting figures among a tenant's workflows whose runs ended recently; return how many.

    Flags of figures that no longer drift are closed. Outermost action: owns the transactions, one per
    workflow.
    """
    with tenant_transaction(tenant_id):
        since = database_now() - LATELY
        recent = [
            name
            for name in workflows_run()
            if RunFigures.objects.filter(workflow=name, ended_at__gt=since).exists()
        ]
    return sum(_looked_at(tenant_id, workflow) for workflow in recent)


def _looked_at(tenant_id: UUID, workflow: str) -> int:
    with tenant_transaction(tenant_id):
        at, found = database_now(), get_usage_spreads(workflow)
        drifting = {
            metric: (spread.count, spread.drift)
            for metric, spread in found.items()
            if spread.drift is not None
        }
        standing = DriftFlag.objects.filter(workflow=workflow, ended_at=None)
        standing.exclude(metric__in=list(drifting)).update(ended_at=at)
        for metric in standing.filter(told=False).values_list("metric", flat=True):
            if _is_news(workflow, metric):
                standing.filter(metric=metric, told=False).update(ended_at=at)
        known = set(standing.values_list("metric", flat=True))
        return sum(
            _insert_drift_flag(tenant_id, workflow, metric, runs, drift, at)
            for metric, (runs, drift) in drifting.items()
            if metric not in known
        )


def _insert_drift_flag(
    tenant_id: UUID, workflow: str, metric: str, runs: int, drift: Drift, at: datetime
) -> bool:
    """Insert a flag and return whether it is new; concurrent checks insert only one."""
    told, made, cursor = _is_news(workflow, metric), fresh_id(), raw_cursor()
    values: Mapping[str, object] = {
        "id": made, "tenant": tenant_id, "workflow": workflow, "metric": metric, "was": drift.before,
        "is_now": drift.now, "runs": runs, "told": told, "at": at,
    }  # fmt: skip
    cursor.execute(_FLAGGED, values)
    if cursor.fetchone() is None:
        return False
    if told:
        data = _build_drift_notice(workflow, metric, runs, drift)
        tell_people(tenant_id, FIGURES_DRIFT, f"drift:{made}", data, at=at, cursor=cursor)
    return True


def _is_news(workflow: str, metric: str) -> bool:
    """Return whether no notification about this figure falls into the runs that are compared."""
    told = DriftFlag.objects.filter(workflow=workflow, metric=metric, told=True).order_by("-at").first()
    if told is None:
        return True
    since = RunFigures.objects.filter(workflow=workflow, ended_at__gt=told.at).values("id")[: told.runs]
    return since.count() >= told.runs


def _build_drift_notice(workflow: str, metric: str, runs: int, drift: Drift) -> dict[str, object]:
    return {
        "workflow": workflow, "metric": metric, "unit": METRICS[metric], "runs": runs,
        "before": _format_amount(drift.before), "now": _format_amount(drift.now),
    }  # fmt: skip


def _format_amount(amount: Decimal) -> str:
    return f"{amount.normalize():f}"
