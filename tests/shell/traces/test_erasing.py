"""Erasure takes the bytes and the salt, leaves the digests, and the trace says so (X6)."""

import psycopg
import pytest
from django.db import DatabaseError

from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tests.conftest import House
from tests.factories.traces import Pen, move, said, write_run
from tests.proves import proves
from traces.actions import erase_run_payloads
from traces.core.errors import Erased
from traces.core.events import trace_events
from traces.core.events.phases import Phase
from traces.models import Payload
from traces.queries import load_payloads, load_salt
from traces.verification import verify_run


def erased(house: House) -> Pen:
    """A run whose content was erased, as its trace says."""
    pen = write_run(house.tenant.id)
    with tenant_transaction(house.tenant.id):
        count = erase_run_payloads(pen.run)
    word = trace_events.PayloadErased(payloads=count, by="dpo", reason="asked for")
    pen.commit(move(said(word, Phase.TRACE_LOGGING)))
    return pen


@proves("X6")
@proves("R-TRACE-5", part="erasure")
def test_erased_content_is_gone_and_the_trace_still_verifies(house: House) -> None:
    pen = erased(house)
    with tenant_transaction(house.tenant.id):
        names = [bytes(row.digest).hex() for row in Payload.objects.filter(run_id=pen.run)]
        assert len(names) == 3
        assert load_payloads(pen.run, names) == {}
        with pytest.raises(Erased):
            load_salt(pen.run)
        assert verify_run(pen.run, pen.head) == []


def test_content_that_is_gone_without_a_word_is_a_fault(house: House) -> None:
    pen = write_run(house.tenant.id)
    with tenant_transaction(house.tenant.id):
        assert erase_run_payloads(pen.run) == 3
        assert {fault.where.split()[0] for fault in verify_run(pen.run, pen.head)} == {"Payload", "Salt"}


def test_erasing_twice_finds_nothing_more(house: House) -> None:
    pen = erased(house)
    with tenant_transaction(house.tenant.id):
        assert erase_run_payloads(pen.run) == 0


@proves("X6", part="other tenant")
def test_nobody_erases_another_tenants_content(house: House) -> None:
    pen = write_run(house.tenant.id)
    with tenant_transaction(house.people.other_tenant.id):
        assert erase_run_payloads(pen.run) == 0
    with tenant_transaction(house.tenant.id):
        assert len(load_salt(pen.run)) == 32
        assert verify_run(pen.run, pen.head) == []


def test_only_the_function_erases_and_only_that(house: House, superuser: psycopg.Connection) -> None:
    pen = write_run(house.tenant.id)
    with pytest.raises(DatabaseError), tenant_transaction(house.tenant.id):
        raw_cursor().execute("UPDATE traces_payload SET body = NULL WHERE run_id = %s", (pen.run,))
    with superuser.transaction(force_rollback=True):
        superuser.execute("SET LOCAL ROLE interlock_owner")
        superuser.execute("SELECT set_config('interlock.tenant', %s, true)", [str(house.tenant.id)])
        change = "UPDATE traces_payload SET body = 'other' WHERE run_id = %s"
        with pytest.raises(psycopg.errors.IntegrityConstraintViolation):
            superuser.execute(change, [pen.run])
