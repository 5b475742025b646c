"""Check that a tenant's ceilings leave enough for a run to begin (R-BUDGET-10).

A run that would end at once is refused before it is admitted, and the client learns when to try again.
"""

from datetime import datetime
from decimal import Decimal
from uuid import UUID

from budgets.actions import ensure_tenant_windows, require_room, tell_refused
from budgets.core.errors import CeilingTooNear
from orchestrator.core.admission.affordability import wanted_of_tenant
from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.core.domain.manifest import Manifest
from orchestrator.core.domain.run_events import Headroom
from orchestrator.core.domain.run_state import RunState
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import raw_cursor, tenant_transaction


def begins_within(graph: CompiledGraph, manifest: Manifest, state: RunState, at: datetime) -> None:
    """Check that the tenant's day and month leave what the run needs to begin in its opening `state`.

    Joins the admission's transaction.

    Raises: CeilingTooNear.
    """
    windows = ensure_tenant_windows(manifest.tenant, at)
    lefts = [left for left in (windows.day_left, windows.month_left) if left is not None]
    limit = manifest.limits.get("cost_usd")
    # The walk takes a millisecond or two, so it is skipped if the run's whole cost limit fits.
    if not lefts or (limit is not None and limit <= min(lefts)):
        return
    window, ceiling = windows.scarcer
    room = Headroom(tenant_cost=min(lefts), tenant_window=window, tenant_limit=ceiling)
    wanted = wanted_of_tenant(graph, manifest, state, room)
    if wanted is not None:
        require_room(manifest.tenant, wanted, at)


def tell_too_near(tenant_id: UUID, refused: CeilingTooNear) -> None:
    """Alert administrators that the remaining budget turns tasks away (R-BUDGET-10).

    The alert is the same as for a run that the budget stopped. Outermost verb with a transaction of its own:
    the admission's was rolled back.
    """
    with tenant_transaction(tenant_id):
        tell_refused(tenant_id, Decimal(refused.data["wanted"]), database_now(), raw_cursor())
