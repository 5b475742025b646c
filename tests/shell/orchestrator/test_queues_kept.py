"""What named a queue before queues were rows has one afterwards (R-SEC-11)."""

from importlib import import_module
from typing import Any

import orjson
import psycopg
import pytest

from orchestrator.publishing.models import BoundaryVersion, ToolVersion, WorkflowVersion
from orchestrator.tools.models.tool_proposal import ToolProposal
from tenancy.core.queues import STANDING_QUEUES
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Queue
from tests.factories.approvals import open_desk
from tests.factories.world import World
from tests.proves import proves
from tests.servers import TestServers

BODIES: tuple[tuple[type[Any], dict[str, Any]], ...] = (
    (WorkflowVersion, {"nodes": [{"kind": "approval", "config": {"queue": "of-a-gate"}}]}),
    (
        WorkflowVersion,
        {
            "nodes": [
                {
                    "kind": "tool",
                    "config": {
                        "tool": "review.request",
                        "arguments": {"queue": {"from": "constant", "value": "of-a-review"}},
                    },
                },
                {"kind": "approval"}, {"kind": "approval", "config": {"queue": ""}},
            ]
        },
    ),
    (BoundaryVersion, {"escalation_routes": {"default": "of-a-boundary"}}),
    (ToolVersion, {"queue": "Of A Tool"}),
)  # fmt: skip
NAMED = {"of-a-gate", "of-a-review", "of-a-boundary", "Of A Tool", "of-a-proposal", "of-a-request"}


def statement(app: str, name: str) -> str:
    """What a migration says to the database first."""
    found: str = import_module(f"{app}.migrations.{name}").Migration.operations[0].sql
    return found


@proves("R-SEC-11", part="whatever named a queue keeps it")
@pytest.mark.slow
def test_each_name_that_stands_anywhere_becomes_a_queue(world: World, servers: TestServers) -> None:
    with open_desk(world.house) as desk:
        desk.ask(queue="of-a-request")
    with tenant_transaction(world.id):
        for number, (model, body) in enumerate(BODIES):
            extra = {"tier": 1} if model is WorkflowVersion else {}
            model.objects.create(
                tenant_id=world.id, slug="before", version=number + 1, digest=fresh_id().hex * 2,
                body=orjson.dumps(body), published_at="2026-01-01T00:00:00Z", **extra,
            )  # fmt: skip
        ToolProposal.objects.create(
            tenant_id=world.id, kind="boundary", tool="x", weaker=[], reason="x", by=fresh_id(),
            owner=fresh_id(), at="2026-01-01T00:00:00Z",
            body={"document": {"escalation_routes": {"default": "of-a-proposal"}}},
        )  # fmt: skip
    with servers.superuser() as connection, connection.transaction(force_rollback=True):
        connection.execute("SET LOCAL session_replication_role = replica")
        gone = "DELETE FROM tenancy_queue WHERE tenant_id = %s AND name <> ALL (%s)"
        connection.execute(gone, (world.id, []))
        member = "UPDATE tenancy_membership SET queues = '{of-a-member}' WHERE person_id = %s"
        connection.execute(member, (world.people.approver.person.id,))
        connection.execute("DELETE FROM tenancy_queue")
        connection.execute("SET LOCAL session_replication_role = origin")
        # As the migrations run: the owner is held to row-level security like everybody else.
        connection.execute("SET LOCAL ROLE interlock_owner")
        connection.execute("ALTER TABLE tenancy_queue NO FORCE ROW LEVEL SECURITY")
        connection.execute(import_module("tenancy.migrations.0030_queues").FILL.encode())
        connection.execute("ALTER TABLE tenancy_queue FORCE ROW LEVEL SECURITY")
        for app, name in (("approvals", "0012_queues"), ("orchestrator", "0046_queues")):
            connection.execute(statement(app, name).encode())
        connection.execute("RESET ROLE")
        rows = connection.execute("SELECT name FROM tenancy_queue WHERE tenant_id = %s", (world.id,))
        assert {name for (name,) in rows} >= NAMED | {"of-a-member", *STANDING_QUEUES}
        with pytest.raises(psycopg.errors.CheckViolation), connection.transaction():
            connection.execute(
                "INSERT INTO tenancy_queue (id, tenant_id, name, description, created_at)"
                " VALUES (gen_random_uuid(), %s, 'Not So', '', now())",
                (world.id,),
            )
    with tenant_transaction(world.id):
        assert not Queue.objects.filter(name="of-a-gate").exists()
