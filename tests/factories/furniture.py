"""A tenant furnished with what ships, for the price of five inserts: the verb asks two hundred questions."""

from functools import cache
from typing import Any
from uuid import UUID

from django.db import connection

from orchestrator.publishing.actions.seed import seed_tenant
from orchestrator.publishing.models import (
    BoundaryVersion,
    PromptVersion,
    RegistryVersion,
    ToolVersion,
    WorkflowVersion,
)
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tenancy.models import Queue
from tenancy.people.queues import open_queues
from tests.factories.tenancy import make_tenant

CATALOGUE: tuple[type[Any], ...] = (
    BoundaryVersion, PromptVersion, ToolVersion, RegistryVersion, WorkflowVersion,
)  # fmt: skip
# The server reads the rows from one text: through a model each, they would take most of a short test's time.
INSERT = """
INSERT INTO {table} SELECT made.* FROM jsonb_array_elements(%s::jsonb) WITH ORDINALITY AS one (held, n)
CROSS JOIN LATERAL jsonb_populate_record(NULL::{table}, held || jsonb_build_object(
  'tenant_id', %s::uuid, 'id', (%s::uuid[])[n], 'published_at', clock_timestamp())) AS made ORDER BY n"""


_names: set[str] = set()


@cache
def _pattern() -> tuple[tuple[str, str, int], ...]:
    """For each table of the catalogue how its rows are put in, the rows of a tenant that the verb itself
    furnished, once in this process, and how many they are."""
    shown = make_tenant()
    seed_tenant(shown.id)
    with tenant_transaction(shown.id):
        _names.update(open_queues())
    found = []
    for table in (model._meta.db_table for model in CATALOGUE):
        with tenant_transaction(shown.id), connection.cursor() as cursor:
            cursor.execute(f"SELECT jsonb_agg(one ORDER BY id)::text, count(*) FROM {table} one")
            rows, count = cursor.fetchone()
        found.append((INSERT.format(table=table), rows, count))
    return tuple(found)


def furnish_like_the_verb(tenant_id: UUID) -> None:
    """Give a tenant without a catalogue the rows `seed_tenant` would. Outermost verb: owns the
    transaction."""
    pattern = _pattern()
    with tenant_transaction(tenant_id):
        missing = sorted(_names - open_queues())
        now = database_now()
        Queue.objects.bulk_create([Queue(tenant_id=tenant_id, name=name, created_at=now) for name in missing])
        for statement, rows, count in pattern:
            ids = [fresh_id() for _ in range(count)]
            raw_cursor().execute(statement, (rows, tenant_id, ids), prepare=True)
