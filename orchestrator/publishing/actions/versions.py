"""Publishing: a new version of something runs are pinned to. Never edited, found again by digest
(R-GRAPH-4)."""

from collections.abc import Mapping
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Manager

from orchestrator.core.approval.named_queues import queues_of_boundary
from orchestrator.core.compiler.compiler import canonical_form, compile_graph
from orchestrator.core.domain.boundary import Boundary
from orchestrator.core.domain.graph import CompiledGraph, GraphSpec
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.policies.queries.boundaries import newest_boundary
from orchestrator.publishing.models import (
    BoundaryVersion,
    PromptVersion,
    Published,
    RegistryVersion,
    ToolVersion,
    WorkflowVersion,
)
from orchestrator.tools.actions.schema_drift import lift_drift
from orchestrator.tools.actions.stale_proposals import outdate_proposals
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import take_advisory_lock
from tenancy.people.queues import check_queues, hold_open_queues, open_queues
from traces.core.canonical import canonical_model, compute_digest, encode_canonical

P = TypeVar("P", bound=Published)


def publish_workflow(
    tenant_id: UUID,
    source: Mapping[str, Any] | GraphSpec,
    *,
    by: UUID | None,
    tools: Mapping[str, ToolSpec] | None = None,
) -> WorkflowVersion:
    """Compile and publish; the same graph again is the version that stands. Joins the caller's transaction.

    It is compiled against `tools`, or those that are active now. Raises CompileFailed with every fault.
    """
    hold_open_queues()
    graph = compile_here(source, tools=tools)
    spec, body = graph.spec, canonical_form(graph.spec)
    extra = {"title": spec.title[:200], "tier": spec.tier}
    return _publish_version(WorkflowVersion, tenant_id, spec.slug, graph.digest, body, by, extra)


def compile_here(
    source: Mapping[str, Any] | GraphSpec, *, tools: Mapping[str, ToolSpec] | None = None
) -> CompiledGraph:
    """Compile against the tenant's own tools, boundary and queues, and publish nothing. Joins the caller's
    transaction. Raises CompileFailed with every fault."""
    wanted = source.boundary if isinstance(source, GraphSpec) else source.get("boundary")
    newest = newest_boundary(str(wanted)[:64])
    boundary = Boundary.model_validate_json(bytes(newest.body)) if newest is not None else None
    return compile_graph(
        source, tools=active_tools() if tools is None else tools, boundary=boundary, queues=open_queues()
    )


def publish_boundary(tenant_id: UUID, boundary: Boundary, *, by: UUID | None) -> BoundaryVersion:
    """Publish a boundary; the version number is given here. Joins the caller's transaction. Raises
    InvalidInput where it names a queue that is not open."""
    check_queues(list(queues_of_boundary(boundary)))
    number = _get_next_version(BoundaryVersion, boundary.slug)
    same = newest_boundary(boundary.slug)
    if same is not None:
        held = Boundary.model_validate_json(bytes(same.body))
        if held.evolve(version=0) == boundary.evolve(version=0):
            return same
    body = canonical_model(boundary.evolve(version=number))
    return _publish_version(
        BoundaryVersion, tenant_id, boundary.slug, compute_digest("boundary", body), body, by, {}
    )


def publish_prompt(tenant_id: UUID, slug: str, text: str, *, by: UUID | None) -> PromptVersion:
    """Publish a prompt template. Joins the caller's transaction."""
    body = text.encode()
    return _publish_version(PromptVersion, tenant_id, slug, compute_digest("prompt", body), body, by, {})


def publish_tools(tenant_id: UUID, specs: tuple[ToolSpec, ...], *, by: UUID | None) -> RegistryVersion:
    """Publish tool versions and the registry that holds exactly these as active. Joins the caller's
    transaction. Raises InvalidInput where one names a queue that is not open."""
    hold_registry(tenant_id)
    check_queues([(f"/{place}/queue", spec.queue) for place, spec in enumerate(specs)])
    return publish_registry(
        tenant_id, {spec.name: _tool_published(tenant_id, spec, by=by).digest for spec in specs}, by=by
    )


def hold_registry(tenant_id: UUID) -> None:
    """Until the transaction ends nobody else changes the tenant's tools: versions are numbered one by one."""
    take_advisory_lock(f"registry:{tenant_id}")


def publish_registry(tenant_id: UUID, active: Mapping[str, str], *, by: UUID | None) -> RegistryVersion:
    """Make exactly these the active tools, digests by name; what waits about another one of them is outdated.
    Joins the caller's transaction, which holds the registry."""
    body = encode_canonical(dict(active))
    newest = RegistryVersion.objects.order_by("-version").first()
    registry_digest = compute_digest("registry", body)
    if newest is not None and newest.digest == registry_digest:
        return newest
    made = RegistryVersion.objects.create(
        tenant_id=tenant_id,
        version=newest.version + 1 if newest is not None else 1,
        digest=registry_digest,
        tools=dict(active),
        published_by=by,
        published_at=database_now(),
    )
    outdate_proposals(tenant_id)
    return made


def active_tools() -> dict[str, ToolSpec]:
    """The tools of the newest registry, by name."""
    registry = RegistryVersion.objects.order_by("-version").first()
    if registry is None:
        return {}
    rows = ToolVersion.objects.filter(digest__in=list(registry.tools.values()))
    return {row.slug: ToolSpec.model_validate_json(bytes(row.body)) for row in rows}


def publish_tool(tenant_id: UUID, spec: ToolSpec, *, by: UUID | None) -> ToolVersion:
    """Publish a tool's version, in no registry yet; the version number is given here. Joins the caller's
    transaction, which holds the registry. Raises InvalidInput where it names a queue that is not open."""
    check_tool_queue(spec)
    return _tool_published(tenant_id, spec, by=by)


def check_tool_queue(spec: ToolSpec) -> None:
    """Raises InvalidInput where people would be asked about a tool in a queue that is not open."""
    check_queues([("/queue", spec.queue)])


def _tool_published(tenant_id: UUID, spec: ToolSpec, *, by: UUID | None) -> ToolVersion:
    newest = ToolVersion.objects.filter(slug=spec.name).order_by("-version").first()
    if newest is not None:
        held = ToolSpec.model_validate_json(bytes(newest.body))
        if held.evolve(version=0) == spec.evolve(version=0):
            return newest
    body = canonical_model(spec.evolve(version=_get_next_version(ToolVersion, spec.name)))
    lift_drift(tenant_id, spec.name, by=by)
    made = _publish_version(ToolVersion, tenant_id, spec.name, compute_digest("tool", body), body, by, {})
    if newest is not None:
        outdate_proposals(tenant_id, spec.name)
    return made


def _get_next_version(model: type[P], slug: str) -> int:
    newest = _find_newest_version(model, slug)
    return 1 if newest is None else newest.version + 1


def _find_newest_version(model: type[P], slug: str) -> P | None:
    manager: Manager[P] = model._default_manager  # noqa: SLF001 - an abstract model has no `objects` to name
    return manager.filter(slug=slug).order_by("-version").first()


def _publish_version(
    model: type[P],
    tenant_id: UUID,
    slug: str,
    body_digest: str,
    body: bytes,
    by: UUID | None,
    extra: Mapping[str, Any],
) -> P:
    """The newest version if it is the same, else a new one."""
    newest = _find_newest_version(model, slug)
    if newest is not None and newest.digest == body_digest and getattr(newest, "retired_at", None) is None:
        return newest
    made = model(
        tenant_id=tenant_id,
        slug=slug,
        version=1 if newest is None else newest.version + 1,
        digest=body_digest,
        body=body,
        published_by=by,
        published_at=database_now(),
        **extra,
    )
    made.save(force_insert=True)
    return made
