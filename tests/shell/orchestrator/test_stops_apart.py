"""A tenant's emergency stops are its own, and those of all are everybody's to read (R-SEC-1, R-SEC-9)."""

from uuid import UUID

import psycopg
import pytest
from django.db import DatabaseError, transaction

from orchestrator.console.queries.system_status import stops_in_force, stops_of
from orchestrator.runs.actions.emergency_stop import lift_stop, stop_everything
from orchestrator.runs.models.emergency_stop import EmergencyStop
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tests.conftest import House
from tests.factories.world import World
from tests.proves import proves

SUM = "How much is (12 + 30) * 2?"


def a_stop(tenant_id: UUID | None) -> EmergencyStop:
    """A stop nobody has made yet."""
    scope = "global" if tenant_id is None else "tenant"
    return EmergencyStop(scope=scope, tenant_id=tenant_id, reason="drill", at=database_now())


@proves("R-SEC-1", part="emergency stops")
@proves("Z3", part="emergency stops")
def test_another_tenants_stop_is_neither_seen_nor_lifted(house: House) -> None:
    other = house.people.other_tenant.id
    theirs = stop_everything("tenant", tenant_id=other, by=None, reason="drill")
    with tenant_transaction(house.tenant.id):
        assert not EmergencyStop.objects.filter(tenant_id=other).exists()
        assert not EmergencyStop.objects.filter(id=theirs.id).update(lifted_at=database_now())
    assert not EmergencyStop.objects.filter(id=theirs.id).exists()
    assert not lift_stop(theirs.id, tenant_id=house.tenant.id, by=None, reason="x")
    assert theirs.id in {stop.id for stop in stops_in_force()}
    assert lift_stop(theirs.id, tenant_id=other, by=None, reason="over")
    assert theirs.id not in {stop.id for stop in stops_in_force()}


@proves("R-SEC-9", part="a tenant writes its own stops alone")
def test_a_tenant_makes_no_stop_of_another_and_none_of_all(house: House) -> None:
    for whose in (house.people.other_tenant.id, None):
        refused = pytest.raises(DatabaseError, match="row-level security")
        with tenant_transaction(house.tenant.id), refused, transaction.atomic():
            a_stop(whose).save(force_insert=True)
    with pytest.raises(DatabaseError, match="row-level security"), transaction.atomic():
        a_stop(house.tenant.id).save(force_insert=True)


@proves("R-SEC-9", part="a stop of all ends every tenant's effects, and no tenant lifts it")
def test_a_stop_of_all_ends_a_tenants_effects_and_is_lifted_by_none(world: World) -> None:
    run = world.submit("tool-loop", SUM)
    stop = stop_everything("global", tenant_id=None, by=None, reason="drill")
    try:
        with tenant_transaction(world.id):
            assert stop.id in {one.id for one in stops_of(world.id)}
            assert not EmergencyStop.objects.filter(id=stop.id).update(lifted_at=database_now())
        assert not lift_stop(stop.id, tenant_id=world.id, by=None, reason="x")
        assert world.drive(run).terminal_code == "USER_CANCEL"
        assert "fact_committed" not in world.kinds(run)
    finally:
        assert lift_stop(stop.id, tenant_id=None, by=None, reason="over")


@proves("R-SEC-9", part="what was put in force is lifted and never rewritten")
@pytest.mark.parametrize("change", ["target = 'x'", "scope = 'tool'", "tenant_id = NULL", "reason = 'x'"])
def test_a_stop_is_lifted_and_never_rewritten(house: House, change: str) -> None:
    stop_everything("tenant", tenant_id=house.tenant.id, by=None, reason="drill")
    denied = pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied")
    with tenant_transaction(house.tenant.id), denied, transaction.atomic():
        raw_cursor().execute(f"UPDATE orchestrator_emergencystop SET {change}".encode())
