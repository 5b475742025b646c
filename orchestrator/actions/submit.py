"""submit_task: a task becomes a run, pinned to what is in force now (R-GRAPH-12). The outermost verb of
the road."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

import orjson
from django.conf import settings
from django.db import transaction

from budgets.actions import charge_tenant_check, open_run_account
from budgets.core.errors import CeilingTooNear
from orchestrator.actions.admission import glance, hold_rates
from orchestrator.actions.beginning import begins_within, tell_too_near
from orchestrator.actions.learning import expected_for
from orchestrator.actions.pinning import pin
from orchestrator.actions.workspace import hand_in
from orchestrator.core.admission import limits_for, opening_move, opening_state
from orchestrator.core.compiler import compile_graph
from orchestrator.core.errors import GoalInvalid, Stopped, TierTooHigh, WorkflowUnknown
from orchestrator.core.goal import Goal
from orchestrator.core.graph import CompiledGraph
from orchestrator.core.learning import subject_of
from orchestrator.core.machine import CORE_VERSION
from orchestrator.core.manifest import Manifest
from orchestrator.core.parsing import fits
from orchestrator.core.task_scope import scope_of
from orchestrator.core.workspace import tree_of
from orchestrator.gateways.queue import offer
from orchestrator.models import EmergencyStop, ManifestRow, Run, Task, WorkflowVersion
from tenancy.batch import Batch
from tenancy.clock import NOW
from tenancy.context import raw_cursor, tenant_reading
from tenancy.idempotency import KeyReused
from tenancy.ids import fresh_id
from tenancy.models import Tenant
from traces.actions import append, open_salt, save_snapshot, store_payloads
from traces.core.canonical import canonical_model, canonical_outside, digest, plain
from traces.core.chain import Head, link
from traces.live import announce

KEY_LIFE = timedelta(hours=24)
TITLE = 200
COMPILED: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitter:
    """Who submits: the principal, the person who answers for it, and what it may do (R-SEC-3)."""

    principal: UUID
    owner: UUID
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A task as it was asked for; already typed, not yet judged."""

    workflow: str
    goal: Goal
    boundary: str | None = None
    budget: Mapping[str, Decimal] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    idempotency_key: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """The accepted task and its first run."""

    task: UUID
    run: UUID
    status: str


def submit_task(tenant_id: UUID, submitter: Submitter, asked: Submission) -> Submitted:
    """Admit a task: durable when this returns, whatever becomes of the broker.

    Raises WorkflowUnknown, GoalInvalid, TierTooHigh, Stopped, NoModel, CeilingReached, RateReached,
    CeilingTooNear, KeyReused, PathRefused, WorkspaceRefused.
    """
    try:
        return _submitted(tenant_id, submitter, asked)
    except CeilingTooNear as refused:
        tell_too_near(tenant_id, refused)
        raise


def _submitted(tenant_id: UUID, submitter: Submitter, asked: Submission) -> Submitted:
    with tenant_reading(tenant_id, NOW, {}) as ((at,),):
        if (known := _submitted_before(submitter, asked, at)) is not None:
            return known
        glance(tenant_id, submitter.principal, at)
        version = _workflow(asked.workflow)
        graph = _compiled(bytes(version.body))
        _admissible(tenant_id, version, at)
        _goal_fits(graph, asked.goal, at)
        pinned = pin(tenant_id, graph, asked.boundary, at)
        run_id = fresh_id()
        asked_limits = limits_for(graph, pinned.pins, asked.goal, asked.budget)
        # The account goes first: the tenant's ceiling may be tighter than what the boundary gives.
        limits = {
            str(name): amount
            for name, amount in open_run_account(tenant_id, run_id, asked_limits, at).items()
        }
        task = _task(tenant_id, submitter, asked, at)
        manifest = Manifest(
            run=run_id,
            task=task.id,
            tenant=tenant_id,
            principal=submitter.principal,
            owner=submitter.owner,
            scopes=submitter.scopes,
            goal=asked.goal,
            goal_digest=task.goal_digest,
            graph=graph.digest,
            pins=pinned.pins,
            pins_digest=pinned.digest,
            limits=limits,
            expected=expected_for(subject_of(graph, pinned.pins)),
            scope=scope_of(asked.goal),
            workflow=version.slug,
            workflow_version=version.version,
            code_version=settings.INTERLOCK_VERSION,
            core_version=CORE_VERSION,
            scripted=all(profile.provider == "scripted" for profile in pinned.pins.profiles),
            admitted_at=at,
            files=tree_of(asked.files).digest if asked.files else None,
        )
        begins_within(graph, manifest, at)
        seq = _open_run(manifest, task, version, graph.entry, asked, at)
        run = manifest.run
        if asked.files:
            hand_in(tenant_id, run, asked.files)
        hold_rates(tenant_id, submitter.principal, run, at)
        transaction.on_commit(lambda: offer(run, tenant=tenant_id))
        transaction.on_commit(lambda: announce(tenant_id, run, seq))
        return Submitted(task=task.id, run=run, status="queued")


def _submitted_before(submitter: Submitter, asked: Submission, at: datetime) -> Submitted | None:
    """The run of the same submission: a process that died after its commit had no chance to say so (W6,
    R-GRAPH-14).

    Raises KeyReused where the key was used for anything else.
    """
    if not asked.idempotency_key:
        return None
    run = (
        Run.objects.select_related("task")
        .filter(
            task__submitted_by=submitter.principal,
            task__idempotency_key=asked.idempotency_key,
            task__created_at__gt=at - KEY_LIFE,
        )
        .order_by("created_at")
        .first()
    )
    if run is None:
        return None
    if run.task.asked_digest != _asked_digest(asked):
        raise KeyReused
    return Submitted(task=run.task_id, run=run.id, status=run.status)


def _asked_digest(asked: Submission) -> str:
    """One digest of everything in a submission but its key; amounts by value, 0.5 is 0.50."""
    body = {
        "workflow": asked.workflow,
        "goal": asked.goal.model_dump(mode="json"),
        "boundary": asked.boundary,
        "budget": {name: plain(amount) for name, amount in asked.budget.items()},
        "metadata": dict(asked.metadata),
        **({"files": tree_of(asked.files).digest} if asked.files else {}),
    }
    return digest("submission", canonical_outside(body))


def _workflow(slug: str) -> WorkflowVersion:
    found = WorkflowVersion.objects.filter(slug=slug, retired_at=None).order_by("-version").first()
    if found is None:
        raise WorkflowUnknown(slug=slug, pointer="/workflow")
    return found


# Tens of milliseconds for the same bytes at each submission; what compiles never changes.
@lru_cache(maxsize=COMPILED)
def _compiled(body: bytes) -> CompiledGraph:
    """The graph of a published version, judged by the checks of today. Raises CompileFailed."""
    return compile_graph(orjson.loads(body))


def _admissible(tenant_id: UUID, version: WorkflowVersion, at: datetime) -> None:
    """Nothing starts against a stop, above the tenant's tier, or over its ceiling."""
    stops = EmergencyStop.objects.filter(lifted_at=None).exclude(scope__in=("tool", "risk", "policy"))
    for stop in stops:
        own = stop.tenant_id == tenant_id and (stop.scope == "tenant" or stop.target == version.slug)
        if stop.scope == "global" or own:
            raise Stopped(scope=stop.scope)
    allowed = Tenant.objects.values_list("highest_autonomy_tier", flat=True).get(id=tenant_id)
    if version.tier > allowed:
        raise TierTooHigh(tier=version.tier, allowed=allowed)
    charge_tenant_check(tenant_id, at)


def _goal_fits(graph: CompiledGraph, goal: Goal, at: datetime) -> None:
    """Inputs of a wrong type are refused here; what is missing the run may still ask for. A review of the
    answer can only be asked for where the workflow has a gate for it (R-GRAPH-15)."""
    if goal.deadline is not None and goal.deadline <= at:
        raise GoalInvalid(detail="the deadline has passed", pointer="/goal/deadline")
    if goal.requires_human_approval and not _reviews(graph):
        detail = "this workflow has no gate for a review of its answer"
        raise GoalInvalid(detail=detail, pointer="/goal/requires_human_approval")
    loose = {**graph.spec.input_schema, "required": []}
    fault = fits(loose, goal.inputs)
    if fault is not None:
        raise GoalInvalid(detail=fault.detail, pointer="/goal/inputs")


def _reviews(graph: CompiledGraph) -> bool:
    checks = [node for node in graph.nodes.values() if node.kind == "verify_output"]
    targets = [edge.target for node in checks for edge in graph.edges_of(node.id, "needs_review")]
    return any(graph.nodes[target].kind == "approval" for target in targets)


def _task(tenant_id: UUID, submitter: Submitter, asked: Submission, at: datetime) -> Task:
    body = canonical_model(asked.goal)
    return Task(
        tenant_id=tenant_id,
        workflow=asked.workflow,
        goal=body,
        goal_digest=digest("goal", body),
        mode=asked.goal.mode.value,
        metadata=dict(asked.metadata),
        submitted_by=submitter.principal,
        owner=submitter.owner,
        idempotency_key=asked.idempotency_key,
        asked_digest=_asked_digest(asked),
        created_at=at,
    )


def _title(goal: Goal) -> str:
    """The beginning of the objective, on one line."""
    return " ".join(goal.objective.split())[:TITLE]


def _open_run(
    manifest: Manifest, task: Task, version: WorkflowVersion, entry: str, asked: Submission, at: datetime
) -> int:
    """Write the task and its run with its manifest, the first record of its trace and the first snapshot, in
    one statement; the sequence of its newest event."""
    tenant_id, run = manifest.tenant, manifest.run
    body = canonical_outside(manifest.model_dump(mode="json", exclude={"pins"}))
    manifest_digest = digest("manifest", body)
    state = opening_state(manifest, entry)
    batch = Batch(raw_cursor())
    salt = open_salt(tenant_id, run, batch=batch)
    move = opening_move(manifest, entry, manifest_digest, salt)
    snapshot = canonical_model(state)
    binds = {"snapshot:0": digest("state", snapshot), "manifest": manifest_digest}
    linked = link(
        Head.start(run),
        [move.move],
        core_version=CORE_VERSION,
        event_digest="",
        headroom=None,
        binds=binds,
        at=at,
    )
    row = Run(
        id=run,
        tenant_id=tenant_id,
        task_id=manifest.task,
        workflow=version.slug,
        title=_title(asked.goal),
        workflow_version=version,
        mode=asked.goal.mode.value,
        scripted=manifest.scripted,
        submitted_by=manifest.principal,
        owner=manifest.owner,
        position=entry,
        record_number=linked.head.record_number,
        record_hash=linked.head.record_hash,
        event_seq=linked.head.event_seq,
        event_hash=linked.head.event_hash,
        manifest_digest=manifest_digest,
        created_at=at,
    )
    kept = ManifestRow(
        id=run, tenant_id=tenant_id, body=body, digest=manifest_digest, pins_digest=manifest.pins_digest
    )
    with batch:
        for one in (task, row, kept):
            batch.row(one)
        append(tenant_id, linked, batch=batch)
        store_payloads(tenant_id, run, move.bodies, batch=batch)
        save_snapshot(tenant_id, run, 0, snapshot, batch=batch)
    return linked.head.event_seq
