"""The checks and rows shared by every admission: of a task's first run and of a retry (R-GRAPH-12)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Final
from uuid import UUID

import orjson
from django.db import connection

from budgets.actions import charge_tenant_check
from orchestrator.core.admission.errors import GoalInvalid, Stopped, TierTooHigh
from orchestrator.core.admission.run_admission import opening_move
from orchestrator.core.common.argument_parsing import validate_against_schema
from orchestrator.core.common.goal import Goal
from orchestrator.core.compiler.compiler import compile_graph
from orchestrator.core.domain.graph import CompiledGraph, answer_schema
from orchestrator.core.domain.manifest import Manifest
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.engine.machine import CORE_VERSION
from orchestrator.publishing.models import WorkflowVersion
from orchestrator.runs.models.emergency_stop import EmergencyStop
from orchestrator.runs.models.run import ManifestRow, Run
from orchestrator.runs.models.task import Task
from tenancy.core.errors import TenantSuspended
from tenancy.core.json_schema.validation import schema_fault
from tenancy.db.statement_batch import Batch
from tenancy.db.tenant_context import raw_cursor
from traces.actions import append_transitions, open_salt, save_snapshot, store_payloads
from traces.core.canonical import canonical_model, canonical_outside, compute_digest
from traces.core.integrity.chain import Head, TraceEntry, link_transitions
from traces.core.sealed_references import REFERENCE
from traces.sealed_values import RunKeys

TITLE: Final = 200
COMPILED: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialRun:
    """The initial data of a run.

    `task` is None if the task already exists. `keys` salt and seal the content; a retry uses those of the run
    before it. `sealed` holds the payloads of the goal's sealed values. `said` and `key` belong to a retry:
    its trace entries and the key under which it was requested.
    """

    state: RunState
    version: WorkflowVersion
    task: Task | None = None
    keys: RunKeys | None = None
    sealed: Mapping[str, bytes] = field(default_factory=dict)
    said: tuple[TraceEntry, ...] = ()
    key: str = ""


def open_run(manifest: Manifest, opening: InitialRun, at: datetime) -> int:
    """Write a run with its manifest, the first record and the first snapshot, in one statement.

    Joins the admission's transaction. Returns the sequence number of the newest event.
    """
    tenant_id, run, state = manifest.tenant, manifest.run, opening.state
    body = canonical_outside(manifest.model_dump(mode="json", exclude={"pins"}))
    manifest_digest = compute_digest("manifest", body)
    batch = Batch(raw_cursor())
    salt = open_salt(tenant_id, run, batch=batch, shared=opening.keys)
    move = opening_move(manifest, state.position, manifest_digest, salt, opening.said)
    snapshot = canonical_model(state)
    binds = {"snapshot:0": compute_digest("state", snapshot), "manifest": manifest_digest}
    linked = link_transitions(
        Head.start(run),
        [move.move],
        core_version=CORE_VERSION,
        event_digest="",
        headroom=None,
        binds=binds,
        at=at,
    )
    kept = ManifestRow(
        id=run, tenant_id=tenant_id, body=body, digest=manifest_digest, pins_digest=manifest.pins_digest
    )
    with batch:
        if opening.task is not None:
            batch.row(opening.task)
        batch.row(_build_run_row(manifest, opening, linked.head, manifest_digest, at))
        batch.row(kept)
        append_transitions(tenant_id, linked, batch=batch)
        store_payloads(tenant_id, run, {**opening.sealed, **move.bodies}, batch=batch)
        save_snapshot(tenant_id, run, 0, snapshot, batch=batch)
    return linked.head.event_seq


def _build_run_row(
    manifest: Manifest, opening: InitialRun, head: Head, manifest_digest: str, at: datetime
) -> Run:
    version, began = opening.version, manifest.began
    return Run(
        id=manifest.run,
        tenant_id=manifest.tenant,
        task_id=manifest.task,
        workflow=version.slug,
        title=_format_run_title(manifest.goal),
        workflow_version=version,
        mode=manifest.goal.mode.value,
        scripted=manifest.scripted,
        submitted_by=manifest.principal,
        owner=manifest.owner,
        position=opening.state.position,
        record_number=head.record_number,
        record_hash=head.record_hash,
        event_seq=head.event_seq,
        event_hash=head.event_hash,
        manifest_digest=manifest_digest,
        created_at=at,
        retry_of_id=began.run if began else None,
        retry_record=began.record if began else None,
        retried_by=began.by if began else None,
        retry_key=opening.key,
    )


def _format_run_title(goal: Goal) -> str:
    """Return the beginning of the objective on one line."""
    return " ".join(REFERENCE.sub(r"[sealed:\1]", goal.objective).split())[:TITLE]


# Compiling the same bytes takes tens of milliseconds at each submission, and the result never changes.
@lru_cache(maxsize=COMPILED)
def compile_stored_graph(body: bytes) -> CompiledGraph:
    """Compile the graph of a published version with the current checks.

    Raises: CompileFailed.
    """
    return compile_graph(orjson.loads(body))


TENANT_OPEN: Final = """
SELECT highest_autonomy_tier, suspended_at IS NOT NULL, suspended_reason
  FROM tenancy_tenant WHERE id = %s FOR KEY SHARE"""


def check_admission(tenant_id: UUID, version: WorkflowVersion, at: datetime) -> None:
    """Check that no stop, tenant tier, ceiling or suspension forbids the run."""
    stops = EmergencyStop.objects.filter(lifted_at=None).exclude(scope__in=("tool", "risk", "policy"))
    for stop in stops:
        own = stop.tenant_id == tenant_id and (stop.scope == "tenant" or stop.target == version.slug)
        if stop.scope == "global" or own:
            raise Stopped(scope=stop.scope)
    # FOR KEY SHARE, as a foreign key locks: a suspension waits for this transaction or is visible to it.
    with connection.cursor() as cursor:
        cursor.execute(TENANT_OPEN, (tenant_id,))
        allowed, suspended, reason = cursor.fetchone()
    if suspended:
        raise TenantSuspended(reason=reason)
    if version.tier > allowed:
        raise TierTooHigh(tier=version.tier, allowed=allowed)
    charge_tenant_check(tenant_id, at)


def goal_fits(graph: CompiledGraph, goal: Goal, at: datetime) -> None:
    """Check that a goal fits the workflow.

    Inputs of a wrong type are refused; the run may still ask for missing ones. A review of the answer can
    only be requested if the workflow has an approval gate for it (R-GRAPH-15).

    Raises: GoalInvalid.
    """
    if goal.deadline is not None and goal.deadline <= at:
        raise GoalInvalid(detail="the deadline has passed", pointer="/goal/deadline")
    if goal.requires_human_approval and not _has_review_approval(graph):
        detail = "this workflow has no gate for a review of its answer"
        raise GoalInvalid(detail=detail, pointer="/goal/requires_human_approval")
    if goal.output_schema is not None:
        _check_answer_schema(graph, goal)
    loose = {**graph.spec.input_schema, "required": []}
    fault = validate_against_schema(loose, goal.inputs)
    if fault is not None:
        raise GoalInvalid(detail=fault.detail, pointer="/goal/inputs")


def _check_answer_schema(graph: CompiledGraph, goal: Goal) -> None:
    """Check that the answer's schema is usable: an unusable one would fail the run at its very end."""
    for schema in (goal.output_schema, answer_schema(graph.spec, goal)):
        fault = schema_fault(schema or {})
        if fault is not None:
            raise GoalInvalid(detail=f"this schema cannot be used: {fault}", pointer="/goal/output_schema")


def _has_review_approval(graph: CompiledGraph) -> bool:
    checks = [node for node in graph.nodes.values() if node.kind == "verify_output"]
    targets = [edge.target for node in checks for edge in graph.edges_of(node.id, "needs_review")]
    return any(graph.nodes[target].kind == "approval" for target in targets)
