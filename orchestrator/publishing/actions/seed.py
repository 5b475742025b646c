"""Seed a tenant with the bundled tools, boundaries, prompts and workflows.

Idempotent: seeding the same content again publishes nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import UUID

from orchestrator import bundled_content
from orchestrator.core.approval.named_queues import queue_of_node, queues_of_boundary
from orchestrator.core.common.name_patterns import EVERY, is_name_match
from orchestrator.core.domain.boundary import Boundary
from orchestrator.core.domain.graph import GraphSpec
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.tools.tool_update import with_admin_settings
from orchestrator.policies.queries.boundaries import was_published
from orchestrator.publishing.actions.versions import (
    active_tools,
    publish_boundary,
    publish_prompt,
    publish_tools,
    publish_workflow,
)
from orchestrator.tools.actions.destinations import with_list
from orchestrator.tools.gateways.registry import Tool, shipped_tools
from orchestrator.tools.queries.destinations import web_rules
from orchestrator.tools.queries.tools import Version, registry_tools, versions_of
from tenancy.actions.queues import furnish_queues
from tenancy.db.tenant_context import tenant_transaction

DEMO_COMPANY: Final = "INTERLOCK_DEMO_URL"
GENERAL: Final = "tool-loop"


def seed_tenant(tenant_id: UUID, *, by: UUID | None = None, demonstration: bool = True) -> None:
    """Publish the bundled content in a tenant, with the queues that it names.

    Joins or opens the tenant's transaction. An admin's settings of a tool are kept, a disabled tool stays
    disabled, and tools that are not bundled stay (R-TOOL-4). A boundary that was published once is not
    published over later versions. Without `demonstration` the tools of the demo company are left out, with
    the workflows and boundaries that consist of them.
    """
    shipped = {tool.spec.name: tool.spec for tool in _select_shipped_tools(demonstration=demonstration)}
    with tenant_transaction(tenant_id):
        tools = _list_seed_tools(demonstration=demonstration)
        boundaries = tuple(_select_boundaries(shipped, demonstration=demonstration))
        workflows = tuple(_select_workflows(shipped, demonstration=demonstration))
        furnish_queues(tenant_id, _collect_queue_names(tools, boundaries, workflows), by=by)
        publish_tools(tenant_id, tools, by=by)
        for boundary in boundaries:
            if not was_published(boundary):
                publish_boundary(tenant_id, boundary, by=by)
        for slug, text in bundled_content.load_bundled_prompts().items():
            publish_prompt(tenant_id, slug, text, by=by)
        for spec in workflows:
            # Checked against the bundled tools: a tool that an admin has disabled is missing to runs only.
            publish_workflow(tenant_id, spec, by=by, tools=shipped)


def _collect_queue_names(
    tools: tuple[ToolSpec, ...], boundaries: tuple[Boundary, ...], workflows: tuple[GraphSpec, ...]
) -> Iterator[str]:
    yield from (tool.queue for tool in tools)
    for boundary in boundaries:
        yield from (name for _, name in queues_of_boundary(boundary))
    for spec in workflows:
        yield from filter(None, (queue_of_node(node.kind, node.config) for node in spec.nodes))


def _select_shipped_tools(*, demonstration: bool) -> list[Tool[Any, Any]]:
    return [tool for tool in shipped_tools().values() if demonstration or tool.service != DEMO_COMPANY]


def _select_boundaries(shipped: Mapping[str, ToolSpec], *, demonstration: bool) -> Iterator[Boundary]:
    """Yield the bundled boundaries.

    Without the demonstration only those that need nothing of it are yielded, limited to the available tools.
    """
    if demonstration:
        yield from bundled_content.load_bundled_boundaries().values()
        return
    for boundary in bundled_content.plain_boundaries().values():
        there = tuple(grant for grant in boundary.tools if any(map(grant.covers, shipped)))
        yield boundary.evolve(tools=there)


def _select_workflows(shipped: Mapping[str, ToolSpec], *, demonstration: bool) -> Iterator[GraphSpec]:
    """Yield the workflows whose tools are available.

    Without the demonstration the general workflow takes every tool that its boundary allows, including tools
    that the tenant adds later.
    """
    for spec in bundled_content.load_bundled_workflows().values():
        if not demonstration and spec.slug == GENERAL:
            yield spec.evolve(tools=(EVERY,))
        elif all(any(is_name_match(pattern, name) for name in shipped) for pattern in spec.tools):
            yield spec


def _list_seed_tools(*, demonstration: bool) -> tuple[ToolSpec, ...]:
    active, rules = registry_tools(), web_rules()
    found = [
        (tool.spec, versions_of(tool.spec.name))
        for tool in _select_shipped_tools(demonstration=demonstration)
    ]
    shipped = tuple(
        _with_admin_settings(spec, known) for spec, known in found if not known or spec.name in active
    )
    shipped = tuple(with_list(spec, rules) for spec in shipped)
    return shipped + tuple(spec for spec in active_tools().values() if spec.remote is not None)


def _with_admin_settings(shipped: ToolSpec, known: list[Version]) -> ToolSpec:
    """Return the bundled tool, with an admin's settings if its newest version is an admin's."""
    if not known or known[0].published_by is None:
        return shipped
    if any(version.spec.evolve(version=0) == shipped.evolve(version=0) for version in known):
        return known[0].spec
    return with_admin_settings(shipped, known[0].spec)
