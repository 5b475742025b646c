"""Whatever a superuser alters, `verify` names the row and the column (X2)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.factories.traces import Pen, write_run
from tests.proves import proves
from traces.core.integrity.verification import VerificationFault
from traces.models import Event, Payload, Record, Row, Snapshot
from traces.verification import verify_run

Change = Callable[[Any, House], Any]


def next_number(value: int, house: House) -> int:
    """Another place."""
    return value + 40


def another_text(value: str, house: House) -> str:
    """Another word of the same kind."""
    return value + "x"


def another_phase(value: int, house: House) -> int:
    """Another phase."""
    return value % 18 + 1


def another_hash(value: bytes, house: House) -> bytes:
    """A hash that differs in one bit."""
    return bytes([value[0] ^ 1]) + value[1:]


def another_body(value: bytes, house: House) -> bytes:
    """Bytes that are still canonical JSON and say something else."""
    return value.replace(b"1", b"2", 1) if b"1" in value else value.replace(b"0", b"7", 1)


def another_run(value: UUID, house: House) -> UUID:
    """A run that is not."""
    return fresh_id()


def another_tenant(value: UUID, house: House) -> UUID:
    """The stranger's tenant."""
    return house.people.other_tenant.id


def later(value: Any, house: House) -> Any:
    """A microsecond later."""
    return value.replace(microsecond=value.microsecond + 1)


HASHED: dict[str, Change] = {
    "tenant_id": another_tenant,
    "run_id": another_run,
    "at": later,
    "phase": another_phase,
    "body": another_body,
    "previous": another_hash,
    "hash": another_hash,
}
EVENT = HASHED | {"seq": next_number, "kind": another_text, "actor": another_text}
RECORD = HASHED | {
    "number": next_number, "source": another_text, "outcome": another_text, "target": another_text
}  # fmt: skip
SNAPSHOT: dict[str, Change] = {
    "tenant_id": another_tenant, "run_id": another_run, "number": next_number, "state": another_body,
    "digest": another_hash,
}  # fmt: skip
PAYLOAD: dict[str, Change] = {
    "tenant_id": another_tenant, "run_id": another_run, "digest": another_hash, "body": another_body,
    "size": next_number,
}  # fmt: skip
TABLES: dict[type[Row], tuple[str, dict[str, Change]]] = {
    Event: ("seq", EVENT),
    Record: ("number", RECORD),
    Snapshot: ("number", SNAPSHOT),
    Payload: ("digest", PAYLOAD),
}  # fmt: skip
EVERY = [(model, column) for model, (_, columns) in TABLES.items() for column in columns]


@contextmanager
def unguarded(superuser: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """The superuser without the triggers."""
    superuser.execute("SET session_replication_role = replica")
    yield superuser


def alter(
    superuser: psycopg.Connection, run: UUID, row: tuple[type[Row], Any], column: str, house: House
) -> None:
    """Change one column of one row (its table and its place) of a run."""
    model, key = row
    place, changes = TABLES[model]
    names = {
        "table": sql.Identifier(model._meta.db_table),
        "column": sql.Identifier(column),
        "key": sql.Identifier(place),
    }
    read = sql.SQL("SELECT {column} FROM {table} WHERE run_id = %s AND {key} = %s").format(**names)
    write = sql.SQL("UPDATE {table} SET {column} = %s WHERE run_id = %s AND {key} = %s").format(**names)
    with unguarded(superuser) as connection:
        found = connection.execute(read, [run, key]).fetchone()
        assert found is not None
        value = changes[column](found[0], house)
        assert value != found[0]
        assert connection.execute(write, [value, run, key]).rowcount == 1


def faults(house: House, pen: Pen) -> list[VerificationFault]:
    """What the verifier says."""
    with tenant_transaction(house.tenant.id):
        return verify_run(pen.run, pen.head)


def keys_of(house: House, pen: Pen, model: type[Row]) -> list[Any]:
    """The places of a run's rows, in order."""
    place = TABLES[model][0]
    with tenant_transaction(house.tenant.id):
        return list(
            model._default_manager.filter(run_id=pen.run).order_by(place).values_list(place, flat=True)
        )


def test_every_column_there_is_gets_altered() -> None:
    for model, (_, columns) in TABLES.items():
        stored = {field.column for field in model._meta.concrete_fields if field.column is not None}
        assert columns.keys() == stored, model


@proves("X2")
@proves("R-TRACE-3")
@pytest.mark.parametrize(("model", "column"), EVERY, ids=lambda value: getattr(value, "__name__", value))
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_an_altered_column_is_named(
    house: House, superuser: psycopg.Connection, model: type[Row], column: str, place: str
) -> None:
    pen = write_run(house.tenant.id)
    assert faults(house, pen) == []
    keys = keys_of(house, pen, model)
    index = {"first": 0, "middle": len(keys) // 2, "last": -1}[place]
    alter(superuser, pen.run, (model, keys[index]), column, house)
    first = faults(house, pen)[0]
    assert first.where.split()[0] == model.__name__
    # A row that went to another tenant or run is not here any more, which is all that can be seen of it.
    assert first.column == ("run_id" if column == "tenant_id" else column)
    if model is not Payload:
        assert first.number == keys[index]


@proves("X2", part="deleted")
@pytest.mark.parametrize("model", [Event, Record, Snapshot, Payload], ids=lambda model: model.__name__)
def test_a_deleted_last_row_is_missed(house: House, superuser: psycopg.Connection, model: type[Row]) -> None:
    pen = write_run(house.tenant.id)
    place, key = TABLES[model][0], keys_of(house, pen, model)[-1]
    table, column = sql.Identifier(model._meta.db_table), sql.Identifier(place)
    with unguarded(superuser) as connection:
        connection.execute(
            sql.SQL("DELETE FROM {} WHERE run_id = %s AND {} = %s").format(table, column), [pen.run, key]
        )
    assert faults(house, pen)[0].where.split()[0] == model.__name__


@proves("X2", part="truncation")
def test_a_trace_cut_off_at_a_commit_is_seen_by_the_head_of_its_run(
    house: House, superuser: psycopg.Connection
) -> None:
    pen = write_run(house.tenant.id)
    with unguarded(superuser) as connection:
        connection.execute("DELETE FROM traces_record WHERE run_id = %s AND number = 4", [pen.run])
        connection.execute("DELETE FROM traces_event WHERE run_id = %s AND seq = 8", [pen.run])
    with tenant_transaction(house.tenant.id):
        assert verify_run(pen.run) == []
        assert {(f.where, f.number) for f in verify_run(pen.run, pen.head)} == {("Record", 4), ("Event", 8)}


@proves("X2", part="reorder")
def test_two_events_that_changed_places_are_named(house: House, superuser: psycopg.Connection) -> None:
    pen = write_run(house.tenant.id)
    with unguarded(superuser) as connection:
        for old, new in ((5, 99), (6, 5), (99, 6)):
            connection.execute(
                "UPDATE traces_event SET seq = %s WHERE run_id = %s AND seq = %s", [new, pen.run, old]
            )
    assert (faults(house, pen)[0].where, faults(house, pen)[0].number) == ("Event", 5)


@proves("X2", part="inserted")
def test_rows_that_no_record_speaks_of_are_named(house: House, superuser: psycopg.Connection) -> None:
    pen = write_run(house.tenant.id)
    copied = {
        "traces_event": "tenant_id, run_id, 9, at, phase, kind, actor, body, hash, hash FROM traces_event",
        "traces_snapshot": "tenant_id, run_id, 4, state, digest FROM traces_snapshot",
    }
    for table, columns in copied.items():
        statement = f"INSERT INTO {table} SELECT {columns} WHERE run_id = %s ORDER BY 3 DESC LIMIT 1"
        superuser.execute(_shaped(table, statement), [pen.run])
    assert {(f.where, f.number) for f in faults(house, pen)} == {("Event", 9), ("Snapshot", 4)}


def _shaped(table: str, statement: str) -> str:
    """An insert names its columns, for a table's own order is an accident."""
    columns = {
        "traces_event": "(tenant_id, run_id, seq, at, phase, kind, actor, body, previous, hash)",
        "traces_snapshot": "(tenant_id, run_id, number, state, digest)",
    }
    return statement.replace(f"INTO {table}", f"INTO {table} {columns[table]}")


@proves("X2", part="salt")
@pytest.mark.parametrize(
    "change", ["salt = sha256(salt)", "salt = NULL, sealing_key = NULL, erased_at = now()"]
)
def test_an_altered_or_silently_erased_salt_is_named(
    house: House, superuser: psycopg.Connection, change: str
) -> None:
    pen = write_run(house.tenant.id)
    with unguarded(superuser) as connection:
        connection.execute(f"UPDATE traces_salt SET {change} WHERE run_id = %s", [pen.run])
    assert faults(house, pen)[0].where == "Salt"
