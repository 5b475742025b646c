"""A tenant furnished with what ships, for the price of five inserts: the verb asks two hundred questions."""

from functools import cache
from typing import Any
from uuid import UUID

from orchestrator.actions.seed import furnish
from orchestrator.models import BoundaryVersion, PromptVersion, RegistryVersion, ToolVersion, WorkflowVersion
from tenancy.clock import database_now
from tenancy.context import tenant
from tenancy.ids import fresh_id
from tests.factories.tenancy import make_tenant

CATALOGUE: tuple[type[Any], ...] = (
    BoundaryVersion, PromptVersion, ToolVersion, RegistryVersion, WorkflowVersion,
)  # fmt: skip


@cache
def _pattern() -> tuple[list[dict[str, Any]], ...]:
    """The catalogue's rows of a tenant that the verb itself furnished, once in this process."""
    shown = make_tenant()
    furnish(shown.id)
    with tenant(shown.id):
        return tuple(list(model.objects.order_by("id").values()) for model in CATALOGUE)


def furnish_like_the_verb(tenant_id: UUID) -> None:
    """Give a tenant without a catalogue the rows `furnish` would. Outermost verb: owns the transaction."""
    rows = _pattern()
    with tenant(tenant_id):
        own = {"tenant_id": tenant_id, "published_at": database_now()}
        for model, found in zip(CATALOGUE, rows, strict=True):
            model.objects.bulk_create([model(**(row | own | {"id": fresh_id()})) for row in found])
