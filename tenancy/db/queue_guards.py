"""How the tables that name queues come to refer to them, as migrations. Plain SQL owned by the owner role."""

from collections.abc import Mapping

from django.db.migrations import RunSQL


def keep_named(named: Mapping[str, str]) -> RunSQL:
    """Make a queue of each (tenant_id, name) that a SELECT over a table finds, unless it is there.

    What stands already may be called as no new queue may, and belongs to every tenant: the guard of names and
    the row-level security are off for the moment.
    """
    tables = ("tenancy_queue", *named)
    made = "\n".join(
        f"""
        INSERT INTO tenancy_queue (id, tenant_id, name, description, created_at)
        SELECT gen_random_uuid(), n.tenant_id, n.queue, '', now()
          FROM (SELECT DISTINCT * FROM ({select}) f(tenant_id, queue)) n WHERE n.queue IS NOT NULL
        ON CONFLICT (tenant_id, name) DO NOTHING;"""  # noqa: S608 - statements of our own migrations
        for select in named.values()
    )
    return RunSQL(
        f"""
        SET CONSTRAINTS ALL IMMEDIATE;
        {"".join(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY;" for table in tables)}
        ALTER TABLE tenancy_queue DISABLE TRIGGER queue_named;
        {made}
        ALTER TABLE tenancy_queue ENABLE TRIGGER queue_named;
        {"".join(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY;" for table in tables)}
        SET CONSTRAINTS ALL DEFERRED;
        """,
        RunSQL.noop,
    )


def queue_key(table: str) -> RunSQL:
    """A table's `queue` is one of the tenant's, open or closed: a run under way may ask in one that was
    closed after it was admitted."""
    return RunSQL(
        f"""
        ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY;
        ALTER TABLE tenancy_queue NO FORCE ROW LEVEL SECURITY;
        ALTER TABLE {table} ADD CONSTRAINT {table}_queue_of_tenant
          FOREIGN KEY (tenant_id, queue) REFERENCES tenancy_queue (tenant_id, name)
          DEFERRABLE INITIALLY IMMEDIATE;
        ALTER TABLE tenancy_queue FORCE ROW LEVEL SECURITY;
        ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
        """,
        f"ALTER TABLE {table} DROP CONSTRAINT {table}_queue_of_tenant;",
    )
