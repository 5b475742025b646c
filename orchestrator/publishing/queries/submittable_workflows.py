"""The workflows that can be submitted, and their limits (R-UI-10). Call it in the tenant's context."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import orjson

from budgets.core.ceilings import Ceilings, of_tier
from budgets.core.dimension import Dimension
from budgets.core.limit_profiles import limits_for
from budgets.models import TenantCeiling
from orchestrator.core.common.errors import WorkflowUnknown
from orchestrator.core.domain.boundary import Boundary
from orchestrator.core.domain.graph import GraphSpec
from orchestrator.policies.queries.boundaries import newest_boundary
from orchestrator.publishing.models import WorkflowVersion
from tenancy.db.tenant_context import current_tenant
from tenancy.models import Tenant

ASKED: Final = (
    (Dimension.COST_USD, "Cost", "US$"),
    (Dimension.MODEL_TURNS, "Model calls", ""),
    (Dimension.TOOL_CALLS, "Tool calls", ""),
    (Dimension.WALL_CLOCK_SECONDS, "Working time", "seconds"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit that a task may lower: the maximum (None: no limit), and its source."""

    name: str
    label: str
    unit: str
    most: Decimal | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A workflow as it can be submitted now."""

    version: WorkflowVersion
    spec: GraphSpec
    limits: tuple[Limit, ...]


def list_submittable_workflows() -> tuple[WorkflowVersion, ...]:
    """Return the newest version of each workflow that is not retired, by name."""
    found = WorkflowVersion.objects.filter(retired_at=None).order_by("slug", "-version").distinct("slug")
    return tuple(found)


def spec_of(version: WorkflowVersion) -> GraphSpec:
    """Parse a version's document."""
    return GraphSpec.model_validate(orjson.loads(bytes(version.body)))


def offer_of(slug: str) -> Offer:
    """Return one workflow with its limits.

    Raises: WorkflowUnknown.
    """
    version = WorkflowVersion.objects.filter(slug=slug, retired_at=None).order_by("-version").first()
    if version is None:
        raise WorkflowUnknown(slug=slug)
    spec = spec_of(version)
    return Offer(version=version, spec=spec, limits=_load_limits(spec))


def _load_limits(spec: GraphSpec) -> tuple[Limit, ...]:
    """Return the limits as admission computes them.

    The boundary's limits are narrowed by the workflow's, and cost by the tenant's ceiling.
    """
    body = newest_boundary(spec.boundary)
    boundary = Boundary.model_validate(orjson.loads(bytes(body.body))) if body is not None else None
    stated: dict[str, Decimal | None] = dict(boundary.budget) if boundary is not None else {}
    said = dict.fromkeys(stated, f"boundary {spec.boundary} v{boundary.version}" if boundary else "")
    for name, given in spec.budget.items():
        held = stated.get(name)
        if held is None or Decimal(given) < held:
            stated[name], said[name] = Decimal(given), f"workflow {spec.slug}"
    limits = {str(name): amount for name, amount in limits_for("async", stated=stated).items()}
    ceiling = _get_tenant_ceilings().per_run_usd
    cost = Dimension.COST_USD.value
    if ceiling is not None and ceiling < limits.get(cost, ceiling + 1):
        limits[cost], said[cost] = ceiling, "this tenant's ceiling for a run"
    return tuple(
        Limit(
            name=dimension.value, label=label, unit=unit, most=limits.get(dimension.value),
            reason=said.get(dimension.value) or "what holds where nobody says otherwise",
        )
        for dimension, label, unit in ASKED
    )  # fmt: skip


def _get_tenant_ceilings() -> Ceilings:
    newest = TenantCeiling.objects.order_by("-set_at", "-id").first()
    if newest is not None:
        return Ceilings(per_run_usd=newest.per_run_usd)
    house = current_tenant()
    assert house is not None
    return of_tier(Tenant.objects.values_list("tier", flat=True).get(id=house))
