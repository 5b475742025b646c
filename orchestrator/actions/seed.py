"""Seeding a tenant with what ships: tools, boundaries, prompts, workflows. Idempotent: the same again
publishes nothing."""

from uuid import UUID

from orchestrator import library
from orchestrator.actions.publish import publish_boundary, publish_prompt, publish_tools, publish_workflow
from orchestrator.gateways.tools.registry import shipped_tools
from tenancy.context import tenant


def furnish(tenant_id: UUID, *, by: UUID | None = None) -> None:
    """Publish the shipped library in a tenant. Outermost verb: owns the transaction."""
    with tenant(tenant_id):
        publish_tools(tenant_id, tuple(tool.spec for tool in shipped_tools().values()), by=by)
        for boundary in library.boundaries().values():
            publish_boundary(tenant_id, boundary, by=by)
        for slug, text in library.prompts().items():
            publish_prompt(tenant_id, slug, text, by=by)
        for spec in library.workflows().values():
            publish_workflow(tenant_id, spec, by=by)
