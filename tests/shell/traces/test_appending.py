"""Appending and recalling: one statement a table, in a pipeline, and back in one round trip."""

from itertools import pairwise
from uuid import UUID

import orjson
import psycopg
import pytest
from django.db import DatabaseError, IntegrityError

from tenancy.db.ids import fresh_id
from tenancy.db.statement_batch import Batch
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tests.conftest import House
from tests.factories.traces import Pen, move, said, write_run
from tests.proves import proves
from traces.actions import save_snapshot, store_payloads
from traces.core.canonical import encode_canonical
from traces.core.errors import TraceMissing
from traces.core.events import trace_events
from traces.core.state_patch import apply_patch
from traces.models import Event, Payload, Record
from traces.queries import events_after, list_records, load_payloads, load_salt, load_state_parts
from traces.verification import verify_run

TABLES = ("traces_event", "traces_record", "traces_snapshot", "traces_payload", "traces_salt")


def saved(tenant_id: UUID, run: UUID, number: int) -> None:
    """Save an empty snapshot."""
    with Batch(raw_cursor()) as batch:
        save_snapshot(tenant_id, run, number, b"{}", batch=batch)


@proves("R-TRACE-1")
def test_what_a_run_says_stands_in_one_gapless_chained_order(house: House) -> None:
    pen = write_run(house.tenant.id)
    with tenant_transaction(house.tenant.id):
        rows = events_after(pen.run, 0)
        assert [row.seq for row in rows] == list(range(1, 9))
        assert [row.kind for row in rows[:2]] == ["task_submitted", "run_started"]
        assert all(bytes(row.previous) == bytes(before.hash) for before, row in pairwise(rows))
        assert [row.seq for row in events_after(pen.run, 6)] == [7, 8]
        assert verify_run(pen.run, pen.head) == []


@proves("R-SESS-4")
def test_a_state_is_recalled_from_the_newest_snapshot_and_the_patches_after_it(house: House) -> None:
    pen = write_run(house.tenant.id)
    with tenant_transaction(house.tenant.id):
        recalled = load_state_parts(pen.run)
    state = orjson.loads(recalled.state)
    for patch in recalled.patches:
        state = apply_patch(state, patch)
    assert (recalled.snapshot_number, len(recalled.patches)) == (3, 1)
    assert encode_canonical(state) == encode_canonical(pen.state)


@proves("R-SESS-4", part="flat")
def test_bytes_a_record_do_not_grow_with_the_run(house: House) -> None:
    pen = Pen(house.tenant.id)
    word = said(trace_events.RunResumed(cause="decision"))
    pen.commit(move(word), snapshot=True)
    for number in range(1, 60):
        pen.commit(move(word, patch={"version": {"set": number}}))
    with tenant_transaction(house.tenant.id):
        sizes = [len(bytes(record.body)) for record in list_records(pen.run)]
    assert max(sizes[2:]) - min(sizes[2:]) <= 4


def test_a_run_without_a_trace_has_none(house: House) -> None:
    with tenant_transaction(house.tenant.id):
        with pytest.raises(TraceMissing):
            load_state_parts(fresh_id())
        with pytest.raises(TraceMissing):
            load_salt(fresh_id())


def test_content_is_kept_once_a_run_and_found_by_its_digest(house: House) -> None:
    pen = Pen(house.tenant.id)
    name, body = pen.content("x" * 9000)
    with tenant_transaction(house.tenant.id):
        for _ in range(2):
            with Batch(raw_cursor()) as batch:
                store_payloads(house.tenant.id, pen.run, {name: body}, batch=batch)
        with Batch(raw_cursor()) as batch:
            store_payloads(house.tenant.id, pen.run, {}, batch=batch)
        assert load_payloads(pen.run, [name, "0" * 64]) == {name: body}
        assert Payload.objects.filter(run_id=pen.run).count() == 1


def test_two_writers_cannot_both_have_a_place(house: House) -> None:
    pen = write_run(house.tenant.id)
    with pytest.raises(IntegrityError), tenant_transaction(house.tenant.id):
        saved(house.tenant.id, pen.run, 3)


@proves("X1")
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("statement", ["UPDATE {} SET run_id = run_id", "DELETE FROM {}", "TRUNCATE {}"])
def test_the_application_can_neither_change_nor_remove_a_row(
    house: House, table: str, statement: str
) -> None:
    write_run(house.tenant.id)
    with pytest.raises(DatabaseError, match="permission denied"), tenant_transaction(house.tenant.id):
        raw_cursor().execute(statement.format(table))


@proves("R-TRACE-1", part="refused by the database")
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("statement", ["UPDATE {} SET run_id = run_id", "DELETE FROM {}", "TRUNCATE {}"])
def test_not_even_a_superuser_does_so_by_accident(
    house: House, superuser: psycopg.Connection, table: str, statement: str
) -> None:
    write_run(house.tenant.id)
    with pytest.raises(psycopg.errors.IntegrityConstraintViolation):
        superuser.execute(statement.format(table))


@proves("R-SEC-1", part="traces")
def test_another_tenant_sees_and_writes_nothing_of_a_trace(house: House) -> None:
    pen = write_run(house.tenant.id)
    with tenant_transaction(house.people.other_tenant.id):
        assert not Event.objects.filter(run_id=pen.run).exists()
        assert not Record.objects.filter(run_id=pen.run).exists()
    with (
        pytest.raises(DatabaseError, match="row-level security"),
        tenant_transaction(house.people.other_tenant.id),
    ):
        saved(house.tenant.id, pen.run, 9)
    with tenant_transaction(house.people.other_tenant.id):
        saved(house.people.other_tenant.id, pen.run, 3)
