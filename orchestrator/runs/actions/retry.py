"""retry_run: create a further run of a task that begins at a checkpoint of an ended run (R-SESS-9)."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import transaction

from budgets.actions import open_run_account
from budgets.core.errors import CeilingTooNear, PriceUnknown
from orchestrator.core.admission.checkpoint_retry import build_retry_state, find_missing_pin
from orchestrator.core.admission.errors import GoalInvalid, RetryRefused, RunNotFound
from orchestrator.core.admission.retry_recheck import RecheckedState, judged_again
from orchestrator.core.admission.run_admission import limits_again
from orchestrator.core.common.errors import ContentMissing
from orchestrator.core.domain.content_store import ContentStore
from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.core.domain.manifest import Manifest, RetryStart
from orchestrator.core.domain.run_events import Headroom
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.engine.machine import CORE_VERSION
from orchestrator.core.workflow.node_protocol import trace_event
from orchestrator.knowledge.actions.workspace import carry_files
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
from orchestrator.runs.actions.submit import SubmittedTask
from orchestrator.runs.actions.version_pinning import PinsWithDigest, pin_versions
from orchestrator.runs.gateways.job_queue import enqueue_ready
from orchestrator.runs.models.run import ManifestRow, Run
from orchestrator.runs.queries.checkpoints import EndedRun
from orchestrator.runs.queries.state_loader import manifest_of, pins_of
from tenancy.actions import write_audit_entry
from tenancy.core.roles import Scope
from tenancy.db.clock import NOW
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_reading
from tenancy.queries import standing_of
from tenancy.rest.idempotency import KeyReused
from traces.actions import copy_payloads
from traces.core.canonical import canonical_model
from traces.core.errors import Erased
from traces.core.events.phases import Phase
from traces.core.events.trace_events import RunRetried
from traces.core.integrity.chain import TraceEntry
from traces.live import publish_event_hint
from traces.models import Record
from traces.queries import keys_of, load_payloads
from traces.sealed_values import RunKeys

ERASED = "what it had read was erased"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A request for a retry: the principal, the person behind it and the reason.

    `record` is the record after which the retry begins, None for the newest checkpoint.
    """

    principal: UUID
    owner: UUID
    reason: str
    record: int | None = None
    key: str = ""


def retry_run(tenant_id: UUID, run_id: UUID, asked: Retry) -> SubmittedTask:
    """Admit a retry of an ended run; the retry is durable when this returns.

    The versions in force now are pinned and checked as at a submission, in the name of the task's submitter.

    Raises: RunNotFound, RunNotOver, RunSucceeded, RetriedAlready, NoCheckpoint, ChangedSince, EffectInDoubt,
    LearntLate, StillRecording, RetryRefused, KeyReused, and what a submission raises.
    """
    try:
        return _create_retry_run(tenant_id, run_id, asked)
    except (GoalInvalid, PriceUnknown) as refused:
        # The retry's request has no goal, budget or boundary for a pointer to name.
        raise RetryRefused(detail=_format_refusal_reason(refused)) from refused
    except CeilingTooNear as refused:
        tell_too_near(tenant_id, refused)
        raise


def _format_refusal_reason(refused: GoalInvalid | PriceUnknown) -> str:
    if isinstance(refused, PriceUnknown):
        return f"there is no price for {refused.data['model']} of {refused.data['provider']}"
    return str(refused.data["detail"])


def _create_retry_run(tenant_id: UUID, run_id: UUID, asked: Retry) -> SubmittedTask:
    with tenant_reading(tenant_id, NOW, {}) as ((at,),):
        # Of two concurrent callers, the second finds the retry of the first.
        run = Run.objects.select_for_update().filter(id=run_id).first()
        if run is None:
            raise RunNotFound
        if (known := _retried_before(run, asked)) is not None:
            return known
        past = EndedRun(run)
        then, knows = past.checkpoint(asked.record)
        before = _manifest_of(run.id)
        if before.core_version != CORE_VERSION:
            raise RetryRefused(detail="it began under other rules; submit its task again")
        lost = _lost_scopes(before)
        check_rates(tenant_id, before.principal, at)
        version = run.workflow_version
        graph = _load_admitted_graph(tenant_id, version, before, at)
        pinned = pin_versions(tenant_id, graph, before.pins.boundary.slug, at)
        if missing := find_missing_pin(graph, pinned.pins, knows):
            raise RetryRefused(detail=f"{missing} is not there any more")
        began = _build_retry_origin(run, before, then, asked)
        manifest = _build_retry_manifest(before, began, version, graph, pinned, at)
        keys = _load_run_keys(run.id)
        state, found = _recheck_initial_state(
            graph, manifest, build_retry_state(manifest, knows), Headroom(missing_scopes=lost), keys.salt
        )
        begins_within(graph, manifest, state, at)
        said = (_build_retry_trace_entry(began, asked), *found)
        opening = InitialRun(state=state, version=version, keys=keys, said=said, key=asked.key)
        seq = open_run(manifest, opening, at)
        # The goal may hold sealed values, too.
        named = canonical_model(state) + canonical_model(manifest.goal)
        copy_payloads(tenant_id, run.id, manifest.run, named)
        # Fails if the content was erased meanwhile. Content copied before an erasure is the retry's own.
        _load_run_keys(run.id)
        carry_files(run.id, manifest.run)
        hold_rates(tenant_id, before.principal, manifest.run, at)
        _audit_retry(tenant_id, run, manifest, asked)
        transaction.on_commit(lambda: enqueue_ready(manifest.run, tenant=tenant_id))
        transaction.on_commit(lambda: publish_event_hint(tenant_id, manifest.run, seq))
        return SubmittedTask(task=run.task_id, run=manifest.run, status="queued")


def _retried_before(run: Run, asked: Retry) -> SubmittedTask | None:
    """Return the retry already created for the same request under the same key (W6).

    A process that died after its commit could not report the retry.

    Raises: KeyReused.
    """
    if not asked.key:
        return None
    made = Run.objects.filter(retry_of_id=run.id, retried_by=asked.principal, retry_key=asked.key).first()
    if made is None:
        return None
    if asked.record not in (None, made.retry_record):
        raise KeyReused
    return SubmittedTask(task=made.task_id, run=made.id, status=made.status)


def _manifest_of(run_id: UUID) -> Manifest:
    row = ManifestRow.objects.get(id=run_id)
    return manifest_of(bytes(row.body), pins_of(row.tenant_id, row.pins_digest))


def _lost_scopes(before: Manifest) -> tuple[str, ...]:
    """Return the scopes that the task's submitter has lost since.

    Raises: RetryRefused if the submitter may no longer submit.
    """
    standing = standing_of(before.tenant, before.principal)
    held = () if standing is None else tuple(scope.value for scope in standing.scopes)
    if Scope.SUBMIT.value not in held:
        raise RetryRefused(detail="whoever submitted its task may not submit any more")
    return tuple(scope for scope in before.scopes if scope not in held)


def _load_admitted_graph(
    tenant_id: UUID, version: WorkflowVersion, before: Manifest, at: datetime
) -> CompiledGraph:
    """Load the graph of the run itself, in which its state was made: a newer version has other nodes."""
    if version.retired_at is not None:
        raise RetryRefused(detail=f"version {version.version} of its workflow was retired")
    graph = compile_stored_graph(bytes(version.body))
    check_admission(tenant_id, version, at)
    goal_fits(graph, before.goal, at)
    return graph


def _build_retry_origin(run: Run, before: Manifest, then: RunState, asked: Retry) -> RetryStart:
    hashed = Record.objects.values_list("hash", flat=True).get(run_id=run.id, number=then.version)
    return RetryStart(
        run=run.id, record=then.version, record_hash=bytes(hashed).hex(), origin=before.line,
        by=asked.principal, owner=asked.owner,
    )  # fmt: skip


def _build_retry_manifest(
    before: Manifest,
    began: RetryStart,
    version: WorkflowVersion,
    graph: CompiledGraph,
    pinned: PinsWithDigest,
    at: datetime,
) -> Manifest:
    """Build a retry's manifest. Its account is its own: what the run before it spent stays with that run."""
    run_id = fresh_id()
    # What was asked for, not what was given: runs in between may have been given less, or more.
    wanted = limits_again(graph, pinned.pins, before.goal, before.asked)
    limits = open_run_account(before.tenant, run_id, wanted, at)
    return Manifest(
        run=run_id,
        task=before.task,
        tenant=before.tenant,
        principal=before.principal,
        owner=before.owner,
        scopes=before.scopes,
        goal=before.goal,
        goal_digest=before.goal_digest,
        graph=graph.digest,
        pins=pinned.pins,
        pins_digest=pinned.digest,
        limits={str(name): amount for name, amount in limits.items()},
        asked=before.asked,
        # A retry begins in the middle, so the usage statistics of whole runs do not apply.
        expected=None,
        scope=before.scope,
        workflow=version.slug,
        workflow_version=version.version,
        code_version=settings.INTERLOCK_VERSION,
        core_version=CORE_VERSION,
        scripted=all(profile.provider == "scripted" for profile in pinned.pins.profiles),
        admitted_at=at,
        files=before.files,
        began=began,
    )


def _load_run_keys(run_id: UUID) -> RunKeys:
    """Load the salt of the run before and the key of its sealed values.

    A state names content by salted digests, so a line of retries shares one salt.

    Raises: RetryRefused if the keys were erased.
    """
    try:
        return keys_of(run_id)
    except Erased:
        raise RetryRefused(detail=ERASED) from None


def _recheck_initial_state(
    graph: CompiledGraph, manifest: Manifest, state: RunState, room: Headroom, key: bytes
) -> RecheckedState:
    """Check the retry's initial state against what is in force now.

    Raises: RetryRefused.
    """
    assert manifest.began is not None
    desk = ContentStore(key, load_payloads(manifest.began.run, state.answers))
    try:
        judged = judged_again(graph, manifest, state, room, manifest.admitted_at, desk)
    except ContentMissing:
        raise RetryRefused(detail=ERASED) from None
    if isinstance(judged, str):
        raise RetryRefused(detail=f"what is in force now refuses its goal ({judged})")
    return judged


def _build_retry_trace_entry(began: RetryStart, asked: Retry) -> TraceEntry:
    body = RunRetried(
        run=str(began.run), record=began.record, record_hash=began.record_hash, origin=str(began.origin),
        by=str(asked.principal), reason=asked.reason[:500],
    )  # fmt: skip
    return trace_event(Phase.GOAL_INTAKE, body, actor=str(asked.principal))


def _audit_retry(tenant_id: UUID, run: Run, manifest: Manifest, asked: Retry) -> None:
    assert manifest.began is not None
    write_audit_entry(
        tenant_id,
        asked.principal,
        verb="run.retry",
        object=f"run:{run.id}",
        before={"status": run.status},
        after={
            "run": str(manifest.run),
            "record": manifest.began.record,
            "workflow": manifest.workflow,
            "version": manifest.workflow_version,
        },
        reason=asked.reason,
    )
