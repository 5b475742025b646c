"""A transaction whose BEGIN and COMMIT ride in trips is one to Django, too: what joins it shares its end."""

from contextvars import copy_context

import pytest
from django.db import connection, transaction

from tenancy.db.tenant_context import tenant_asking, tenant_reading, tenant_transaction
from tenancy.models import Tenant
from tests.conftest import House

ONE = "SELECT %(one)s::int"


def renamed(house: House, name: str) -> None:
    """Change the tenant's name, wherever that is done."""
    Tenant.objects.filter(id=house.tenant.id).update(name=name)


def named(house: House) -> str:
    """The name that others see now."""
    with tenant_transaction(house.tenant.id):
        return Tenant.objects.get(id=house.tenant.id).name


def serves(house: House) -> bool:
    """Whether the connection is as it was before, for Django and for a further trip."""
    told = (connection.get_autocommit(), connection.in_atomic_block, connection.needs_rollback)
    answers = tenant_asking(house.tenant.id, (ONE, {"one": 1}))
    return told == (True, False, False) and answers == [[(1,)]] and connection.atomic_blocks == []


def test_what_joins_is_committed_with_it_and_then_the_hooks_are_run(house: House) -> None:
    run: list[str] = []
    with tenant_reading(house.tenant.id, ONE, {"one": 1}):
        renamed(house, "joined")
        transaction.on_commit(lambda: run.append(named(house)))
        assert run == []
    assert run == ["joined"]
    assert serves(house)


def test_what_fails_within_undoes_itself_alone(house: House) -> None:
    def undone() -> None:
        with transaction.atomic():
            renamed(house, "undone")
            raise MemoryError

    with tenant_reading(house.tenant.id, ONE, {"one": 1}):
        renamed(house, "kept")
        with pytest.raises(MemoryError):
            undone()
    assert named(house) == "kept"
    assert serves(house)


def test_whoever_fails_takes_all_of_it_along_and_runs_no_hook(house: House) -> None:
    run: list[str] = []

    def failed() -> None:
        with tenant_reading(house.tenant.id, ONE, {"one": 1}):
            renamed(house, "failed")
            transaction.on_commit(lambda: run.append("failed"))
            raise MemoryError

    with pytest.raises(MemoryError):
        failed()
    assert (named(house), run) == (house.tenant.name, [])
    assert serves(house)


def test_what_is_marked_for_rolling_back_is_rolled_back(house: House) -> None:
    with tenant_reading(house.tenant.id, ONE, {"one": 1}):
        renamed(house, "marked")
        transaction.set_rollback(True)
    assert named(house) == house.tenant.name
    assert serves(house)


def test_a_connection_that_is_closed_within_is_opened_anew_for_the_next(house: House) -> None:
    with tenant_reading(house.tenant.id, ONE, {"one": 1}):
        renamed(house, "closed")
        connection.close()
    assert serves(house)
    assert named(house) == house.tenant.name


def test_one_that_is_left_elsewhere_than_it_was_entered_is_rolled_back_all_the_same(house: House) -> None:
    reading = tenant_reading(house.tenant.id, ONE, {"one": 1})
    copy_context().run(reading.__enter__)
    with pytest.raises(ValueError, match="different Context"):
        reading.__exit__(None, None, None)
    assert serves(house)
