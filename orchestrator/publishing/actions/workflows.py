"""Publishing and retiring workflows by people and programs: one verb behind page, API and command
(R-GRAPH-4)."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from orchestrator.core.common.errors import CompileFailed
from orchestrator.core.compiler.checks.diagnostics import make_diagnostic
from orchestrator.core.compiler.compiler import build_compile_error
from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.policies.queries.boundaries import newest_boundary
from orchestrator.publishing.actions.versions import compile_here, publish_workflow
from orchestrator.publishing.models import WorkflowVersion
from orchestrator.workflow_yaml import Source, read_source, with_lines
from tenancy.actions import write_audit_entry
from tenancy.core.errors import NotFound
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import take_advisory_lock, tenant_transaction


class Publication(NamedTuple):
    """A version, and whether this publication made it."""

    version: WorkflowVersion
    new: bool


def compile_source(tenant_id: UUID, text: str) -> CompiledGraph:
    """Compile a source text against the tenant's own tools and boundaries; nothing changes. Opens the
    tenant's transaction itself.

    Raises CompileFailed with every fault, each with its `line`.
    """
    source = read_source(text)
    with tenant_transaction(tenant_id):
        return _compile_workflow(source)


def publish_source(tenant_id: UUID, text: str, *, by: UUID | None, reason: str = "") -> Publication:
    """Compile and publish a source text as the newest version of its workflow; audited. Outermost verb: owns
    the transaction.

    The same graph again is the version that stands. Raises CompileFailed with every fault, each with its
    `line`; nothing is changed then.
    """
    source = read_source(text)
    with tenant_transaction(tenant_id):
        return _publish_workflow_source(tenant_id, source, by=by, reason=reason)


def publish_document(
    tenant_id: UUID, document: Mapping[str, Any], *, by: UUID | None, reason: str = ""
) -> Publication:
    """The same for a document that is no text: its faults have no line."""
    source = Source(text="", document=dict(document))
    with tenant_transaction(tenant_id):
        return _publish_workflow_source(tenant_id, source, by=by, reason=reason)


def retire_workflow(
    tenant_id: UUID, slug: str, number: int, *, by: UUID | None, reason: str
) -> WorkflowVersion:
    """Take a version out of choice; the newest that is left is what new runs get. Runs of it go on. Audited.
    Outermost verb: owns the transaction.

    A version that was retired before keeps its time. Raises NotFound.
    """
    with tenant_transaction(tenant_id):
        version = WorkflowVersion.objects.filter(slug=slug, version=number).first()
        if version is None:
            raise NotFound
        at = database_now()
        if WorkflowVersion.objects.filter(id=version.id, retired_at=None).update(retired_at=at):
            write_audit_entry(
                tenant_id, by, verb="workflow.retire", object=f"workflow:{slug}",
                before={"version": number, "retired": False}, after={"version": number, "retired": True},
                reason=reason,
            )  # fmt: skip
        version.refresh_from_db()
        return version


def _find_newest_version(slug: str) -> WorkflowVersion | None:
    return WorkflowVersion.objects.filter(slug=slug).order_by("-version").first()


def _compile_workflow(source: Source) -> CompiledGraph:
    try:
        graph = compile_here(source.document)
    except CompileFailed as error:
        raise _with_source_lines(error, source) from None
    boundary = graph.spec.boundary
    if newest_boundary(boundary) is None:
        raise _with_source_lines(
            build_compile_error((make_diagnostic(0, f"boundary: there is no boundary {boundary!r} here"),)),
            source,
        )
    return graph


def _with_source_lines(error: CompileFailed, source: Source) -> CompileFailed:
    return CompileFailed(count=error.data["count"], faults=with_lines(error.data["faults"], source))


def _publish_workflow_source(tenant_id: UUID, source: Source, *, by: UUID | None, reason: str) -> Publication:
    take_advisory_lock(f"workflows:{tenant_id}")
    spec = _compile_workflow(source).spec
    before = _find_newest_version(spec.slug)
    version = publish_workflow(tenant_id, spec, by=by)
    new = before is None or before.id != version.id
    if new:
        was: dict[str, Any] = {} if before is None else {"version": before.version, "digest": before.digest}
        write_audit_entry(
            tenant_id, by, verb="workflow.publish", object=f"workflow:{version.slug}", before=was,
            after={"version": version.version, "digest": version.digest}, reason=reason,
        )  # fmt: skip
    return Publication(version, new)
