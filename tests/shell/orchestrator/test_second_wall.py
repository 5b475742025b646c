"""The database's own answer to a gateway that asks before it sends, with the machine lying (R-BUDGET-17)."""

from collections.abc import Iterator
from decimal import Decimal
from uuid import UUID

import psycopg
import pytest
from django.db import connection

from budgets.actions import Settle, post_to_ledger
from budgets.queries import list_run_entries
from orchestrator.outbound.gateways.database_authorization import DatabasePermit
from orchestrator.runs.models.emergency_stop import EmergencyStop
from orchestrator.runs.models.run import Intent, Run
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tests.conftest import House
from tests.factories.dying import Killed, dies_at
from tests.factories.world import World, make_world
from tests.proves import proves


@pytest.fixture
def world(house: House) -> Iterator[World]:
    yield make_world(house)
    connection.close()


@pytest.fixture
def flying(world: World) -> Run:
    """A run with one effect in flight, whose worker holds it."""
    run = world.submit("tool-loop", "How much is (12 + 30) * 2?")

    world.worker.fault = dies_at("committed")
    with pytest.raises(Killed):
        world.drive(run)
    return world.run(run)


def asked(run: Run, effect: str, *, look: bool, fence: int | None = None) -> str:
    """What the database answers."""
    permit = DatabasePermit(run.tenant_id, run.id, effect, run.fence if fence is None else fence, look=look)
    refused = permit.check()
    return "ok" if refused is None else refused.reason


def effect_of(run: Run) -> str:
    """The effect in flight."""
    with tenant_transaction(run.tenant_id):
        return Intent.objects.get(run_id=run.id).effect


@proves("R-BUDGET-17", part="asked of the database")
@pytest.mark.parametrize("look", [False, True])
def test_only_a_committed_intent_with_an_open_reservation_under_the_fence_may_go(
    world: World, flying: Run, look: bool
) -> None:
    effect = effect_of(flying)
    assert asked(flying, effect, look=look) == "ok"
    assert asked(flying, "0" * 32, look=look) == "intent"
    assert asked(flying, effect, look=look, fence=flying.fence + 1) == "fence"
    with tenant_transaction(world.id):
        stop = EmergencyStop.objects.create(
            scope="tenant", tenant_id=world.id, target="", reason="drill", at=database_now()
        )
    assert asked(flying, effect, look=look) == "emergency_stop"
    with tenant_transaction(world.id):
        EmergencyStop.objects.filter(id=stop.id).update(lifted_at=database_now())
        Run.objects.filter(id=flying.id).update(lease_until=database_now())
    assert asked(flying, effect, look=look) == "fence"


@proves("R-BUDGET-17", part="nothing twice")
@pytest.mark.parametrize("look", [False, True])
def test_a_settled_effect_may_neither_go_nor_be_looked_up(world: World, flying: Run, look: bool) -> None:
    effect = effect_of(flying)
    with tenant_transaction(world.id):
        at, cursor = database_now(), raw_cursor()
        held = _reserved(flying.id, effect)
        settle = Settle(effect_id=effect, reserved=held, actual=held)
        post_to_ledger(world.id, flying.id, settles=(settle,), reserves=(), at=at, cursor=cursor)
    assert asked(flying, effect, look=look) == "reservation"


def test_a_look_up_may_go_when_its_effects_own_time_is_over(
    world: World, flying: Run, superuser: psycopg.Connection
) -> None:
    effect = effect_of(flying)
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute("UPDATE orchestrator_intent SET deadline = now() WHERE effect = %s", (effect,))
    assert (asked(flying, effect, look=False), asked(flying, effect, look=True)) == ("intent", "ok")


def _reserved(run: UUID, effect: str) -> dict[str, Decimal]:
    entry = next(one for one in list_run_entries(run) if one.effect_id == effect)
    return {dimension.value: amount for dimension, amount in entry.reserved.items()}
