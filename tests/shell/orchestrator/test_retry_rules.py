"""By which rules a retry goes: those of the run that made its state, where they protect as today's do
(R-SESS-9, R-SESS-13)."""

from typing import Any
from uuid import UUID

import orjson
import psycopg
import pytest

from orchestrator.core.admission.checkpoint_retry import GUARDED_SINCE
from orchestrator.core.common.errors import RetryRefused
from orchestrator.core.engine.machine import CORE_VERSION
from orchestrator.runs.actions.run_signals import cancel
from orchestrator.runs.models.run import ManifestRow, Run
from tenancy.db.tenant_context import tenant_transaction
from tests.factories.retrying import retried, rewrite
from tests.factories.world import World
from tests.proves import proves


@pytest.fixture
def run(world: World) -> UUID:
    """A cancelled run."""
    found = world.submit("tool-loop", "How much is (12 + 30) * 2?")
    cancel(world.id, found, by=world.people.operator.id, reason="Not now.")
    assert world.drive(found).terminal_code == "USER_CANCEL"
    return found


@proves("R-SESS-13", part="a retry follows the rules of the run that made its state")
def test_a_retry_has_the_core_version_of_the_run_before_it(
    world: World, run: UUID, superuser: psycopg.Connection
) -> None:
    # One that is not today's, so that it can be told from it.
    rewrite(superuser, run, core_version=CORE_VERSION + 1)
    again = retried(world, run)
    with tenant_transaction(world.id):
        body = orjson.loads(bytes(ManifestRow.objects.get(id=again).body))
    assert body["core_version"] == CORE_VERSION + 1


@proves("R-SESS-9", part="what is in force now holds")
def test_a_run_of_rules_that_protected_less_is_not_retried(
    world: World, run: UUID, superuser: psycopg.Connection
) -> None:
    rewrite(superuser, run, core_version=GUARDED_SINCE - 1)
    with pytest.raises(RetryRefused, match="older rules; submit its task again"):
        retried(world, run)
    with tenant_transaction(world.id):
        assert Run.objects.count() == 1
    rewrite(superuser, run, core_version=GUARDED_SINCE)
    assert retried(world, run) != run


def overdue(superuser: psycopg.Connection, run: UUID) -> None:
    """The deadline of the task has passed."""
    row = superuser.execute("SELECT body FROM orchestrator_manifestrow WHERE id = %s", [run]).fetchone()
    assert row is not None
    goal = orjson.loads(bytes(row[0]))["goal"]
    rewrite(superuser, run, goal={**goal, "deadline": "2020-01-01T00:00:00Z"})


def unbounded(superuser: psycopg.Connection, run: UUID) -> None:
    """Its boundary is not there any more."""
    superuser.execute("ALTER TABLE orchestrator_boundaryversion DISABLE TRIGGER USER")
    superuser.execute("UPDATE orchestrator_boundaryversion SET slug = 'gone-' || slug")
    superuser.execute("ALTER TABLE orchestrator_boundaryversion ENABLE TRIGGER USER")


@proves("R-SESS-9", part="what is in force now holds")
@pytest.mark.parametrize(
    ("obstacle", "words"), [(overdue, "the deadline has passed"), (unbounded, "there is no boundary")]
)
def test_what_refuses_a_task_is_said_as_of_a_retry(
    world: World, run: UUID, superuser: psycopg.Connection, obstacle: Any, words: str
) -> None:
    obstacle(superuser, run)
    with pytest.raises(RetryRefused, match=f"cannot be retried: {words}") as refused:
        retried(world, run)
    # There is no body of a task that it could point into.
    assert "pointer" not in refused.value.data
