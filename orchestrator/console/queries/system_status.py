"""The state of the deployment's parts, as far as a tenant may know it (R-UI-1, R-SEC-9).

Call it inside the tenant's context.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection
from django.db.models import Count, Exists, Min, OuterRef, Q

from orchestrator.runs.models.emergency_stop import EmergencyStop
from orchestrator.runs.models.run import LIVE, Run, RunSignal, SignalReceipt
from orchestrator.tools.queries.tools import DISABLED
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Tenant

PATIENCE = timedelta(seconds=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSeen:
    """A worker that holds runs of this tenant, their number, and the end of its shortest lease."""

    name: str
    runs: int
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatus:
    """The database's version and clock, the workers, the queued runs, and the stops in force."""

    database: str
    at: datetime
    workers: tuple[WorkerSeen, ...]
    queued: int
    oldest_queued: datetime | None
    dead_leases: int
    signals: int
    stops: tuple[EmergencyStop, ...]

    @property
    def stuck(self) -> bool:
        """True if a run has waited too long for a worker."""
        return self.oldest_queued is not None and self.at - self.oldest_queued > PATIENCE


def get_system_status(tenant_id: UUID, at: datetime) -> ServiceStatus:
    """Return the state of all parts at `at`."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        (database,) = cursor.fetchone()
    # Only a run that has not ended is leased; without this filter all ended runs would be scanned.
    live = Run.objects.filter(status__in=LIVE)
    leased = live.filter(lease_until__gt=at).values("lease_owner").order_by("lease_owner")
    queued = Run.objects.filter(status="queued").aggregate(count=Count("id"), oldest=Min("created_at"))
    # Receipts are looked up per signal: a list of all receipts would exceed the memory of a statement.
    taken = Exists(SignalReceipt.objects.filter(id=OuterRef("id")))
    return ServiceStatus(
        database=str(database), at=at,
        workers=tuple(
            WorkerSeen(name=row["lease_owner"] or "", runs=row["runs"], until=row["until"])
            for row in leased.annotate(runs=Count("id"), until=Min("lease_until"))
        ),
        queued=queued["count"], oldest_queued=queued["oldest"],
        dead_leases=live.filter(lease_owner__isnull=False, lease_until__lte=at).count(),
        signals=RunSignal.objects.filter(at__gt=at - timedelta(days=1)).exclude(taken).count(),
        stops=stops_of(tenant_id),
    )  # fmt: skip


def stops_of(tenant_id: UUID) -> tuple[EmergencyStop, ...]:
    """Return the stops that hold this tenant's runs, including global ones. Call it in the tenant's
    context.
    """
    ours = Q(scope="global") | Q(tenant_id=tenant_id)
    found = EmergencyStop.objects.filter(ours, lifted_at=None).exclude(scope="policy")
    return tuple(found.order_by("at", "id"))


def stops_in_force() -> list[EmergencyStop]:
    """Return every stop, of all tenants and of each, oldest first, for the operator's command line.

    Opens each tenant's transaction itself.
    """
    found = list(EmergencyStop.objects.filter(lifted_at=None))
    for house in Tenant.objects.order_by("id").values_list("id", flat=True):
        with tenant_transaction(house):
            own = EmergencyStop.objects.filter(tenant_id=house, lifted_at=None).exclude(scope="policy")
            found.extend(own)
    return sorted(found, key=lambda stop: (stop.at, stop.id))


def stop_of(tenant_id: UUID, stop_id: UUID) -> EmergencyStop | None:
    """Return a stop in force that operators of this tenant may lift.

    This is a stop of the tenant itself. Stops that an administrator set on a tool's page are excluded,
    because they are lifted there. Call it inside the tenant's context.
    """
    own = EmergencyStop.objects.filter(id=stop_id, tenant_id=tenant_id, lifted_at=None)
    elsewhere = Q(scope__in=("risk", "policy")) | Q(scope="tool", reason__startswith=DISABLED)
    return own.exclude(elsewhere).first()


def ended_by(scope: str, target: str) -> int | None:
    """Return how many runs of the tenant an emergency stop would end now.

    None for a tool's stop, which ends no run by itself.
    """
    if scope == "tool":
        return None
    live = Run.objects.filter(status__in=LIVE)
    return (live.filter(workflow=target) if scope == "workflow" else live).count()
