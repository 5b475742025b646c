"""submit_task: turn a task into a run, pinned to the versions now in force (R-GRAPH-12).

It is the outermost verb of the admission.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from budgets.actions import open_run_account
from budgets.core.errors import CeilingTooNear
from orchestrator.core.admission.run_admission import limits_for, opening_state
from orchestrator.core.admission.usage_statistics import subject_of
from orchestrator.core.common.goal import Goal
from orchestrator.core.compiler.errors import WorkflowUnknown
from orchestrator.core.domain.manifest import Manifest
from orchestrator.core.engine.machine import CORE_VERSION
from orchestrator.core.files.workspace import tree_of
from orchestrator.core.policy.task_scope import scope_of
from orchestrator.core.workflow.untrusted_inputs import untrusted_names
from orchestrator.knowledge.actions.workspace import hand_in
from orchestrator.publishing.models import WorkflowVersion
from orchestrator.runs.actions.affordability_check import begins_within, tell_too_near
from orchestrator.runs.actions.rate_limits import check_rates, hold_rates
from orchestrator.runs.actions.run_creation import (
    InitialRun,
    check_admission,
    compile_stored_graph,
    goal_fits,
    open_run,
)
from orchestrator.runs.actions.sealed_goals import sealed_goal
from orchestrator.runs.actions.usage_learning import expected_for
from orchestrator.runs.actions.version_pinning import pin_versions
from orchestrator.runs.gateways.job_queue import enqueue_ready
from orchestrator.runs.models.run import Run
from orchestrator.runs.models.task import Task
from tenancy.core.errors import WorkflowOutOfReach
from tenancy.db.clock import NOW
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import current_reach, take_advisory_lock, tenant_reading
from tenancy.rest.idempotency import KeyReused
from tenancy.secret_store import blinded_by_each
from traces.core.canonical import canonical_model, canonical_outside, compute_digest, format_decimal
from traces.live import publish_event_hint
from traces.sealed_values import fresh_vault

KEY_LIFE = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitter:
    """The submitter of a task: the principal, the person behind it and its scopes (R-SEC-3)."""

    principal: UUID
    owner: UUID
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A task as it was requested: typed, not yet validated."""

    workflow: str
    goal: Goal
    boundary: str | None = None
    budget: Mapping[str, Decimal] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    idempotency_key: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedTask:
    """The accepted task and its first run."""

    task: UUID
    run: UUID
    status: str


def submit_task(tenant_id: UUID, submitter: Submitter, asked: Submission) -> SubmittedTask:
    """Admit a task; the task is durable when this returns, whatever happens to the broker.

    Raises: WorkflowOutOfReach, WorkflowUnknown, GoalInvalid, TierTooHigh, Stopped, NoModel, CeilingReached,
    RateReached, CeilingTooNear, KeyReused, PathRefused, WorkspaceRefused.
    """
    try:
        return _create_submitted_run(tenant_id, submitter, asked)
    except CeilingTooNear as refused:
        tell_too_near(tenant_id, refused)
        raise


def _create_submitted_run(tenant_id: UUID, submitter: Submitter, asked: Submission) -> SubmittedTask:
    with tenant_reading(tenant_id, NOW, {}) as ((at,),):
        if asked.idempotency_key:
            # The commit of a process that has died may still be under way.
            take_advisory_lock(f"submission {tenant_id} {submitter.principal} {asked.idempotency_key}")
        if (known := _submitted_before(tenant_id, submitter, asked, at)) is not None:
            return known
        check_rates(tenant_id, submitter.principal, at)
        version = _get_workflow_version(asked.workflow)
        graph = compile_stored_graph(bytes(version.body))
        check_admission(tenant_id, version, at)
        goal_fits(graph, asked.goal, at)
        pinned = pin_versions(tenant_id, graph, asked.boundary, at)
        run_id = fresh_id()
        asked_limits = limits_for(graph, pinned.pins, asked.goal, asked.budget)
        # The account is opened first: the tenant's ceiling may be tighter than the boundary's limits.
        limits = {
            str(name): amount
            for name, amount in open_run_account(tenant_id, run_id, asked_limits, at).items()
        }
        vault = fresh_vault(tenant_id)
        goal = sealed_goal(asked.goal, vault)
        task = _build_task(tenant_id, submitter, asked, goal, at)
        manifest = Manifest(
            run=run_id,
            task=task.id,
            tenant=tenant_id,
            principal=submitter.principal,
            owner=submitter.owner,
            scopes=submitter.scopes,
            goal=goal,
            goal_digest=task.goal_digest,
            graph=graph.digest,
            pins=pinned.pins,
            pins_digest=pinned.digest,
            limits=limits,
            asked=dict(asked.budget),
            expected=expected_for(subject_of(graph, pinned.pins)),
            scope=scope_of(goal, untrusted_names(graph.spec.input_schema)),
            workflow=version.slug,
            workflow_version=version.version,
            code_version=settings.INTERLOCK_VERSION,
            core_version=CORE_VERSION,
            scripted=all(profile.provider == "scripted" for profile in pinned.pins.profiles),
            admitted_at=at,
            files=tree_of(asked.files).digest if asked.files else None,
        )
        state = opening_state(manifest, graph.entry)
        begins_within(graph, manifest, state, at)
        opening = InitialRun(state=state, version=version, task=task, keys=vault.keys, sealed=vault.bodies)
        seq = open_run(manifest, opening, at)
        run = manifest.run
        if asked.files:
            hand_in(tenant_id, run, asked.files)
        hold_rates(tenant_id, submitter.principal, run, at)
        transaction.on_commit(lambda: enqueue_ready(run, tenant=tenant_id))
        transaction.on_commit(lambda: publish_event_hint(tenant_id, run, seq))
        return SubmittedTask(task=task.id, run=run, status="queued")


def _submitted_before(
    tenant_id: UUID, submitter: Submitter, asked: Submission, at: datetime
) -> SubmittedTask | None:
    """Return the run that the same submission under the same key has made already, or None (W6, R-GRAPH-14).

    A client repeats a submission if the answer did not reach it, for example because the process died after
    its commit.

    Raises: KeyReused if the key was used for anything else.
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
    if run.task.asked_digest not in _asked_digests(tenant_id, asked):
        raise KeyReused
    return SubmittedTask(task=run.task_id, run=run.id, status=run.status)


def _asked_digests(tenant_id: UUID, asked: Submission) -> tuple[str, ...]:
    """Return the digests of a submission without its key, the current one first.

    The others may have been stored under a former secret of the application. Amounts count by value: 0.5
    equals 0.50.
    """
    body = {
        "workflow": asked.workflow,
        "goal": asked.goal.model_dump(mode="json"),
        "boundary": asked.boundary,
        "budget": {name: format_decimal(amount) for name, amount in asked.budget.items()},
        "metadata": dict(asked.metadata),
        **({"files": tree_of(asked.files).digest} if asked.files else {}),
    }
    return blinded_by_each(tenant_id, f"submission {compute_digest('submission', canonical_outside(body))}")


def _get_workflow_version(slug: str) -> WorkflowVersion:
    if (reach := current_reach()) is not None and not reach.has_workflow(slug):
        raise WorkflowOutOfReach(slug=slug)
    found = WorkflowVersion.objects.filter(slug=slug, retired_at=None).order_by("-version").first()
    if found is None:
        raise WorkflowUnknown(slug=slug, pointer="/workflow")
    return found


def _build_task(tenant_id: UUID, submitter: Submitter, asked: Submission, goal: Goal, at: datetime) -> Task:
    """Build the task with its goal as stored: sensitive values in it are sealed."""
    body = canonical_model(goal)
    return Task(
        tenant_id=tenant_id,
        workflow=asked.workflow,
        goal=body,
        goal_digest=compute_digest("goal", body),
        mode=asked.goal.mode.value,
        metadata=dict(asked.metadata),
        submitted_by=submitter.principal,
        owner=submitter.owner,
        idempotency_key=asked.idempotency_key,
        asked_digest=_asked_digests(tenant_id, asked)[0],
        created_at=at,
    )
