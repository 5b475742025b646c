"""Breakers that a run tripped, in sentences, with the origin of their limits (R-BUDGET-12).

All functions run in the tenant's context.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

import orjson

from budgets.actions.ceilings import ceilings_at
from budgets.queries.tenant import ceiling_version_at
from orchestrator.core.admission.run_admission import limits_for
from orchestrator.core.common.goal import Mode
from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.core.domain.manifest import Manifest
from orchestrator.core.readmodel.breaker_messages import (
    CEILING_BACK,
    MONEY,
    BreakerMessage,
    Setters,
    Trip,
    describe_limit_origins,
    in_one,
    told_of,
)
from orchestrator.runs.models.run import ManifestRow, Run
from orchestrator.runs.queries.run_list import names_of
from orchestrator.runs.queries.state_loader import graph_of, manifest_of, pins_of
from tenancy.db.tenant_context import raw_cursor
from tenancy.models import Tenant
from traces.models import Event

KINDS: Final = ("breaker_tripped", "reservation_refused", "budget_extended")
MOST: Final = 400
SHOWN: Final = 12
TASK: Final = "task"
TENANTS: Final = "tenant"
RUNS_OWN: Final[Mapping[str, Any]] = {"account": "run", "limit": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrippedBreaker:
    """A breaker as shown on the page: how often it tripped for this reason, and when last."""

    breaker: str
    at: datetime
    seq: int
    times: int
    told: BreakerMessage


def breakers_of(run: Run) -> tuple[TrippedBreaker, ...]:
    """List the run's tripped breakers, newest first, one for each breaker, reason and subject."""
    rows = Event.objects.filter(run_id=run.id, kind__in=KINDS).order_by("-seq")[:MOST]
    events = [(row.seq, row.at, row.kind, orjson.loads(bytes(row.body))) for row in reversed(rows)]
    if not any(kind == "breaker_tripped" for _, _, kind, _ in events):
        return ()
    setters, refusal = _load_limit_setters(run, events), RUNS_OWN
    found: dict[tuple[str, str, str], TrippedBreaker] = {}
    for seq, at, kind, body in events:
        if kind == "reservation_refused":
            refusal = body
        if kind != "breaker_tripped":
            continue
        trip = _parse_breaker_trip(body, refusal if body["breaker"] == "budget_gate" else RUNS_OWN)
        key = (trip.breaker, trip.reason, trip.subject)
        before = found.pop(key, None)
        found[key] = TrippedBreaker(
            breaker=trip.breaker, at=at, seq=seq, times=1 + (before.times if before else 0),
            told=told_of(trip, setters),
        )  # fmt: skip
    return tuple(reversed(found.values()))[:SHOWN]


def stopped_by_ceiling(run: Run) -> str:
    """Explain which tenant ceiling exhausted the run's money, or return "" if no ceiling did.

    The sentence names the ceiling, its amount, its author and the refused reservation (R-BUDGET-10).
    """
    told = next((one.told for one in breakers_of(run) if one.breaker == "budget_gate"), None)
    return "" if told is None or told.back != CEILING_BACK else in_one(told)


def cost_set_by(run: Run) -> str:
    """Return the origin of the run's current cost limit: its setter, or the boundary."""
    given = Event.objects.filter(run_id=run.id, kind="budget_extended").order_by("seq")[:MOST]
    events = [(row.seq, row.at, row.kind, orjson.loads(bytes(row.body))) for row in given]
    setters = _load_limit_setters(run, events)
    return setters.dimensions.get(MONEY, setters.boundary)


def _parse_breaker_trip(body: Mapping[str, Any], refusal: Mapping[str, Any]) -> Trip:
    return Trip(
        breaker=body["breaker"], reason=body["reason"], subject=body["subject"], account=refusal["account"],
        limit=_parse_amount(body["limit"]), actual=_parse_amount(body["actual"]),
        ceiling=_parse_amount(refusal["limit"]),
    )  # fmt: skip


def _parse_amount(said: str | None) -> Decimal | None:
    return None if said is None else Decimal(said)


def _load_limit_setters(run: Run, events: Iterable[tuple[int, datetime, str, Mapping[str, Any]]]) -> Setters:
    """Return the limit origins: as admitted, with the submitter's name, and with later extensions."""
    admitted = _load_admitted_setters(run.tenant_id, run.id)
    task = f"the task, as {names_of([run.submitted_by]).get(run.submitted_by, 'its submitter')} submitted it"
    dimensions = {name: task if word == TASK else word for name, word in admitted.dimensions.items()}
    windows = {}
    for _, at, kind, said in events:
        if kind == "budget_extended":
            dimensions |= dict.fromkeys(said["amounts"], "people who gave more during the run")
        if kind == "reservation_refused" and said["account"].startswith(TENANTS):
            windows[said["account"]] = _who_set_ceilings(run.tenant_id, at)
    return admitted.evolve(dimensions=dimensions, windows=windows)


def _who_set_ceilings(tenant_id: UUID, at: datetime) -> str:
    """Describe who set the tenant's ceilings that were in force at `at`, and when."""
    found = ceiling_version_at(at)
    if found is None:
        tier = Tenant.objects.values_list("tier", flat=True).get(id=tenant_id)
        return f"the tenant's tier, {tier}, for nobody has set a ceiling"
    who = names_of([found.set_by]).get(found.set_by) if found.set_by is not None else None
    return f"{who or 'whoever runs this house'} on {found.set_at:%Y-%m-%d}"


@lru_cache(maxsize=512)
def _load_admitted_setters(tenant_id: UUID, run_id: UUID) -> Setters:
    """Return the origin of each limit as admitted. The result is cached.

    The pins of a run never change, and a page that follows a run asks again with each of the run's events.
    """
    run = Run.objects.only("workflow", "workflow_version_id").get(id=run_id)
    body, digest = ManifestRow.objects.values_list("body", "pins_digest").get(id=run_id)
    manifest = manifest_of(bytes(body), pins_of(tenant_id, digest))
    graph, pins = graph_of(tenant_id, run.workflow_version_id), manifest.pins
    dimensions = describe_limit_origins(
        manifest.limits, boundary=pins.boundary,
        workflow=f"workflow {run.workflow} v{manifest.workflow_version}",
        workflow_budget=graph.spec.budget, defaults=_build_default_limits(manifest, graph),
        ceiling=ceilings_at(tenant_id, manifest.admitted_at, raw_cursor()).per_run_usd, task=TASK,
    )  # fmt: skip
    return Setters(
        boundary=f"boundary {pins.boundary.slug} v{pins.boundary.version}", dimensions=dimensions,
        tools={tool.name: f"tool {tool.name} v{tool.version}" for tool in pins.tools},
        profiles={profile.name: f"model profile {profile.name}" for profile in pins.profiles},
    )  # fmt: skip


def _build_default_limits(manifest: Manifest, graph: CompiledGraph) -> Mapping[str, Decimal]:
    """Return the limits that would apply if the task requested none. A long task states its own time."""
    mode = Mode.ASYNC if manifest.goal.mode is Mode.LONG_RUNNING else manifest.goal.mode
    return limits_for(graph, manifest.pins, manifest.goal.evolve(mode=mode), {})
