"""What PostgreSQL refuses by itself, and what the proof names when somebody stronger altered a row."""

from typing import Any

import psycopg
import pytest

from budgets.core.entry import COLUMNS
from budgets.ledger_verification import check_run, verify_ledger
from budgets.models import Entry
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.factories.budgets import Purse, inside, open_purse
from tests.proves import proves


def used_purse(house: House) -> Purse:
    """A run that spent something and has something in flight."""
    purse = open_purse(house.tenant.id, {"tool_calls": 5, "cost_usd": 1})
    effect, _ = purse.reserve({"tool_calls": 1, "cost_usd": "0.10"})
    purse.settle(effect, {"tool_calls": 1, "cost_usd": "0.04"})
    purse.reserve({"tool_calls": 1, "cost_usd": "0.10"})
    return purse


@proves("R-BUDGET-2", part="trigger")
def test_reserved_cannot_be_raised_beyond_the_limit_even_by_hand(house: House) -> None:
    purse = used_purse(house)
    with inside(purse.tenant) as cursor, pytest.raises(psycopg.errors.CheckViolation):
        cursor.execute(
            """UPDATE budgets_line SET reserved = reserved + 4
                WHERE account_id = %s AND dimension = 'tool_calls'""",
            [purse.run],
        )


@proves("R-BUDGET-2", part="never negative")
@pytest.mark.parametrize("column", ["used", "reserved"])
def test_a_line_is_never_negative(house: House, column: str) -> None:
    purse = used_purse(house)
    with inside(purse.tenant) as cursor, pytest.raises(psycopg.errors.CheckViolation):
        cursor.execute(f"UPDATE budgets_line SET {column} = -1 WHERE account_id = %s", [purse.run])


@pytest.mark.parametrize(
    "change",
    [
        "dimension = 'replans'",
        *(f"{column} = gen_random_uuid()" for column in ("account_id", "tenant_id", "id")),
        "used = used, dimension = 'replans'",
    ],
)
def test_a_line_stays_with_its_account(house: House, superuser: psycopg.Connection, change: str) -> None:
    purse = used_purse(house)
    with pytest.raises(psycopg.errors.CheckViolation, match="a line stays"):
        superuser.execute(f"UPDATE budgets_line SET {change} WHERE account_id = %s", [purse.run])


def test_a_line_starts_empty(house: House) -> None:
    purse = used_purse(house)
    with inside(purse.tenant) as cursor, pytest.raises(psycopg.errors.CheckViolation):
        cursor.execute(
            """INSERT INTO budgets_line (id, tenant_id, account_id, dimension, used, reserved)
               VALUES (%s, %s, %s, 'gold', 5, 0)""",
            [fresh_id(), purse.tenant, purse.run],
        )


@proves("R-BUDGET-3", part="append-only")
@pytest.mark.parametrize(
    "statement",
    ["UPDATE budgets_entry SET cause = 'open'", "DELETE FROM budgets_entry", "TRUNCATE budgets_entry"],
)
def test_the_ledger_refuses_to_be_rewritten(
    house: House, superuser: psycopg.Connection, statement: str
) -> None:
    purse = used_purse(house)
    with inside(purse.tenant) as cursor, pytest.raises(psycopg.errors.InsufficientPrivilege):
        cursor.execute(statement)
    with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="append-only"):
        superuser.execute(statement)


@pytest.mark.parametrize("table", ["account", "line", "tranche", "tenantceiling", "price"])
def test_the_application_deletes_nothing(house: House, table: str) -> None:
    with inside(house.tenant.id) as cursor, pytest.raises(psycopg.errors.InsufficientPrivilege):
        cursor.execute(f"DELETE FROM budgets_{table}")


def tamper(superuser: psycopg.Connection, statement: str, *values: Any) -> None:
    """Alter a row as a superuser with every trigger switched off."""
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        assert superuser.execute(statement, values).rowcount == 1


ALTERED = {
    "id": "gen_random_uuid()", "tenant_id": None, "run_id": None, "account_id": "gen_random_uuid()",
    "month_id": "gen_random_uuid()", "tranche_id": "gen_random_uuid()", "effect_id": "'forged'",
    "cause": "'release'", "amounts": """'{"used":{"tool_calls":"1"}}'""", "unknown": "NOT unknown",
    "price_version": "'forged'", "at": "at + interval '1 second'", "digest": "sha256('')", "marks": "'\\x00'",
}  # fmt: skip


@proves("R-TRACE-3", part="entry columns by a superuser")
@proves("R-BUDGET-3", part="tampering")
@pytest.mark.parametrize("column", [*COLUMNS, "digest", "marks"])
def test_every_altered_column_of_an_entry_is_named(
    house: House, superuser: psycopg.Connection, column: str
) -> None:
    purse = used_purse(house)
    with tenant_transaction(purse.tenant):
        assert check_run(purse.run) == []
        entry = Entry.objects.filter(run_id=purse.run, cause="settle").get()
    forged = ALTERED[column]
    if column in ("tenant_id", "run_id"):
        other = used_purse(house)
        value = f"'{other.run}'" if column == "run_id" else f"'{house.tenant.id}'"
        if column == "tenant_id":
            return elsewhere(purse, entry, superuser)
        tamper(superuser, f"UPDATE budgets_entry SET run_id = {value} WHERE id = %s", entry.id)
        found = faults_of(other, None)
        assert "run_id" in found
        return None
    tamper(superuser, f"UPDATE budgets_entry SET {column} = {forged} WHERE id = %s", entry.id)
    assert column in faults_of(purse, None)
    return None


def elsewhere(purse: Purse, entry: Entry, superuser: psycopg.Connection) -> None:
    """An entry given to another tenant is a stranger there and missing here."""
    from tests.factories.tenancy import make_tenant  # noqa: PLC0415 - not before Django's apps are there

    other = make_tenant().id
    tamper(superuser, "UPDATE budgets_entry SET tenant_id = %s WHERE id = %s", other, entry.id)
    with tenant_transaction(other):
        assert "tenant_id" in {fault.column for fault in verify_ledger()}
    assert faults_of(purse, purse.run)


def faults_of(purse: Purse, run: object) -> set[str]:
    """The columns that the proof names, of a run or of the whole tenant."""
    with tenant_transaction(purse.tenant):
        return {fault.column for fault in verify_ledger(purse.run if run else None)}


@proves("R-BUDGET-3", part="sums")
@pytest.mark.parametrize("column", ["used", "reserved", "limit"])
def test_an_altered_line_is_named(house: House, superuser: psycopg.Connection, column: str) -> None:
    purse = used_purse(house)
    tamper(
        superuser,
        f"""UPDATE budgets_line SET "{column}" = "{column}" + 1
             WHERE account_id = %s AND dimension = 'tool_calls'""",
        purse.run,
    )
    assert faults_of(purse, purse.run) == {column}


@pytest.mark.parametrize("column", ["held", "used", "reserved", "booked"])
def test_an_altered_tranche_is_named(house: House, superuser: psycopg.Connection, column: str) -> None:
    purse = used_purse(house)
    with superuser.transaction():
        superuser.execute("ALTER TABLE budgets_tranche DROP CONSTRAINT budgets_tranche_covers")
        statement = f"UPDATE budgets_tranche SET {column} = {column} + 1 WHERE run_account_id = %s"
        assert superuser.execute(statement, [purse.run]).rowcount == 1
        superuser.execute(
            """ALTER TABLE budgets_tranche ADD CONSTRAINT budgets_tranche_covers
                 CHECK (held >= used + reserved) NOT VALID"""
        )
    assert column in faults_of(purse, purse.run)


@proves("R-BUDGET-3", part="deleted entry")
def test_a_deleted_entry_leaves_a_gap_that_is_named(house: House, superuser: psycopg.Connection) -> None:
    purse = used_purse(house)
    with tenant_transaction(purse.tenant):
        last = Entry.objects.filter(run_id=purse.run).order_by("-id")[0]
    tamper(superuser, "DELETE FROM budgets_entry WHERE id = %s", last.id)
    assert faults_of(purse, purse.run)


@proves("R-BUDGET-3", part="in flight")
def test_a_reservation_nobody_holds_any_more_is_named(house: House) -> None:
    purse = used_purse(house)
    with tenant_transaction(purse.tenant):
        assert verify_ledger(purse.run, open_effects=purse.held) == []
        assert [fault.column for fault in verify_ledger(purse.run, open_effects=())] == ["reserved"]
