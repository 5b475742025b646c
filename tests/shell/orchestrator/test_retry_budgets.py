"""What a retry is given: what its task would be given now, and no more than it asked for (R-SESS-9)."""

from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
import psycopg
import pytest

from orchestrator import bundled_content
from orchestrator.publishing.actions.versions import publish_boundary
from orchestrator.runs.actions.run_signals import cancel
from orchestrator.runs.models.run import ManifestRow
from tenancy.db.tenant_context import tenant_transaction
from tests.factories.retrying import retried, rewrite
from tests.factories.world import World
from tests.proves import proves

ASKED = {"tool_calls": "3", "cost_usd": "0.25"}


def cancelled(world: World, run: UUID) -> UUID:
    """The run, once it was cancelled."""
    cancel(world.id, run, by=world.people.operator.id, reason="Not now.")
    assert world.drive(run).terminal_code == "USER_CANCEL"
    return run


def submitted(world: World, asked: dict[str, str]) -> UUID:
    """A run of a task that asks for a budget, cancelled before it did anything."""
    return cancelled(world, world.submit("tool-loop", "How much is (12 + 30) * 2?", budget=asked))


def gives(world: World, **budget: str) -> None:
    """The boundary of the workflow gives this from now on."""
    boundary = bundled_content.load_bundled_boundaries()["tool-loop-default"]
    given = {**boundary.budget, **{name: Decimal(amount) for name, amount in budget.items()}}
    with tenant_transaction(world.id):
        publish_boundary(world.id, boundary.evolve(budget=given), by=None)


def manifest(world: World, run: UUID) -> dict[str, Any]:
    with tenant_transaction(world.id):
        return dict(orjson.loads(bytes(ManifestRow.objects.get(id=run).body)))


def given(world: World, run: UUID) -> tuple[int, Decimal]:
    """How many calls and how much money a run was given."""
    limits = manifest(world, run)["limits"]
    return int(limits["tool_calls"]), Decimal(limits["cost_usd"])


@proves("R-SESS-9", part="a budget of its own")
def test_a_retry_asks_for_no_more_than_its_task_did(world: World) -> None:
    run = submitted(world, ASKED)
    again = retried(world, run)
    assert given(world, again) == given(world, run) == (3, Decimal("0.25"))
    assert manifest(world, again)["asked"] == manifest(world, run)["asked"]
    assert manifest(world, again)["expected"] is None


@proves("R-SESS-9", part="a budget of its own")
@pytest.mark.parametrize("old", [False, True])
def test_nor_does_the_retry_of_one_that_was_given_less(
    world: World, superuser: psycopg.Connection, old: bool
) -> None:
    run = submitted(world, ASKED)
    gives(world, tool_calls="2", cost_usd="0.10")
    second = cancelled(world, retried(world, run))
    assert given(world, second) == (2, Decimal("0.1"))
    if old:
        for one in (run, second):
            rewrite(superuser, one, asked=None)
    gives(world, tool_calls="9", cost_usd="1")
    third = retried(world, second)
    assert given(world, third) == (3, Decimal("0.25"))
    # Written down from here on.
    assert manifest(world, third)["asked"]["tool_calls"] == "3"


@proves("R-SESS-9", part="a budget of its own")
def test_a_task_that_asked_for_nothing_is_given_what_there_is(world: World) -> None:
    run = submitted(world, {})
    gives(world, tool_calls="2", cost_usd="0.10")
    second = cancelled(world, retried(world, run))
    gives(world, tool_calls="9", cost_usd="1")
    assert given(world, retried(world, second)) == (9, Decimal("1"))
