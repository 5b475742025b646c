"""What the verifier asks beyond the rows: the head that a run claims, its checks, its completeness."""

from uuid import UUID

import psycopg
import pytest

from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.factories.traces import OneRun, Pen, move, one_run, registered, said, write_run
from tests.proves import proves
from traces import verification
from traces.core.errors import TraceMissing
from traces.core.events import trace_events
from traces.core.events.phases import Phase
from traces.core.integrity.chain import Head
from traces.ports import PinnedManifest
from traces.queries import list_missing_parts
from traces.verification import VerificationFault, verify_run, verify_tenant


@proves("R-TRACE-3", part="cut end")
def test_the_head_that_a_run_claims_shows_a_cut_end(house: House, superuser: psycopg.Connection) -> None:
    pen = write_run(house.tenant.id)
    superuser.execute("SET session_replication_role = replica")
    superuser.execute("DELETE FROM traces_record WHERE run_id = %s AND number = 4", [pen.run])
    superuser.execute("DELETE FROM traces_event WHERE run_id = %s AND seq = 8", [pen.run])
    with tenant_transaction(house.tenant.id), one_run(pen.head):
        assert [fault.where for fault in verify_run(pen.run)] == ["Record", "Event"]
        assert [len(faults) for _, faults in verify_tenant()] == [2]


@proves("X2", part="whole run")
def test_a_run_whose_whole_trace_is_gone_is_missed(house: House) -> None:
    pen = Pen(house.tenant.id)
    head = pen.linked(move(said(trace_events.RunStarted()))).head
    with tenant_transaction(house.tenant.id), one_run(head):
        assert {fault.where for _, faults in verify_tenant() for fault in faults} == {"Record", "Event"}


def test_a_run_that_goes_on_while_it_is_read_is_verified_up_to_where_it_was(house: House) -> None:
    pen = write_run(house.tenant.id)
    before = pen.head
    late = trace_events.LateOutcome(effect="e", status="ok")
    after = pen.commit(move(said(late, Phase.OBSERVATION_GROUNDING)), snapshot=True).head
    answers = [before, after]

    class Moving(OneRun):
        def heads(self, run_id: UUID | None = None) -> dict[UUID, Head]:
            return {pen.run: answers.pop(0)}

    with tenant_transaction(house.tenant.id), registered(Moving(after, None)):
        assert verify_run(pen.run) == []
    assert answers == []


def test_a_floor_above_adds_its_own_check(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    pen = write_run(house.tenant.id)
    fault = VerificationFault(where="Entry", number=0, column="amount", sentence="it is not what was written")
    monkeypatch.setattr(verification, "_CHECKS", {})
    verification.register_check("ledger", lambda run: [fault] if run == pen.run else [])
    with tenant_transaction(house.tenant.id):
        assert verify_run(pen.run, pen.head) == [fault]


@proves("R-TRACE-2", part="audit")
def test_a_finished_run_that_lacks_something_fails_its_audit(house: House) -> None:
    pen = write_run(house.tenant.id)
    with tenant_transaction(house.tenant.id), one_run(pen.head, PinnedManifest(b"{}", b"{}")):
        missing = list_missing_parts(pen.run)
        assert {"budget vector", "model versions", "tenant"} <= set(missing)
        assert [fault.column for fault in verify_run(pen.run)] == list(missing)


def test_a_run_without_a_trace_cannot_be_audited(house: House) -> None:
    with tenant_transaction(house.tenant.id), pytest.raises(TraceMissing):
        list_missing_parts(house.tenant.id)
