"""Retrying a run of a test's world."""

from typing import Any
from uuid import UUID

import orjson
import psycopg

from orchestrator.runs.actions.retry import Retry, retry_run
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.checkpoints import Checkpoint, EndedRun
from tenancy.db.tenant_context import tenant_transaction
from tests.factories.tenancy import Somebody
from tests.factories.world import World


def retried(world: World, run: UUID, *, by: Somebody | None = None, **more: Any) -> UUID:
    """Retry a run, by its submitter where nobody else is named; the new run's id."""
    who = by or world.people.submitter
    asked = Retry(
        principal=who.principal.id, owner=who.person.id, reason=more.pop("reason", "Try again."), **more
    )
    return retry_run(world.id, run, asked).run


def checkpoints(world: World, run: UUID) -> list[Checkpoint]:
    """All checkpoints of a run, newest first."""
    with tenant_transaction(world.id):
        past = EndedRun(Run.objects.get(id=run))
        found: list[Checkpoint] = []
        below: int | None = None
        while True:
            page = past.page(below, 3)
            found += page.found
            if page.below is None:
                return found
            below = page.below


def rewrite(superuser: psycopg.Connection, run: UUID, **changes: Any) -> None:
    """Change fields of a run's manifest, which its database does not allow."""
    row = superuser.execute("SELECT body FROM orchestrator_manifestrow WHERE id = %s", [run]).fetchone()
    assert row is not None
    body = orjson.dumps({**orjson.loads(bytes(row[0])), **changes})
    superuser.execute("ALTER TABLE orchestrator_manifestrow DISABLE TRIGGER USER")
    superuser.execute("UPDATE orchestrator_manifestrow SET body = %s WHERE id = %s", [body, run])
    superuser.execute("ALTER TABLE orchestrator_manifestrow ENABLE TRIGGER USER")
