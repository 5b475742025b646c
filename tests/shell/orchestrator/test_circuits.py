"""Circuits that all workers share: rows, one probe among many, and what a run sees of them (R-BUDGET-13)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest
from django.db import connections
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.core.tools import circuit_breaker as rules
from orchestrator.core.tools.circuit_breaker import BlockedCircuit, Circuit, Kind, Setting, Ticket
from orchestrator.outbound.actions import TenantCircuits, circuit_id, reset_circuit
from orchestrator.outbound.models import CircuitRow
from tenancy.core.errors import NotFound
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry
from tests.conftest import House
from tests.doubles.company import Company
from tests.factories.tenancy import make_tenant
from tests.factories.world import World, company_at, fresh_worker, make_world
from tests.proves import proves

SETTING = Setting(threshold=3, cooldown_seconds=30)
TOOL = "orders.lookup"


KINDS: tuple[Kind, ...] = ("use", "model")


def board(tenant_id: UUID) -> TenantCircuits:
    """What a worker that has read nothing yet would use."""
    return TenantCircuits(tenant_id, None, SETTING)


def row_of(tenant_id: UUID, subject: str = TOOL, kind: str = "tool") -> CircuitRow:
    owner = None if kind == "model" else tenant_id
    with tenant_transaction(tenant_id):
        return CircuitRow.objects.get(id=circuit_id(owner, kind, subject))


def break_it(tenant_id: UUID, subject: str = TOOL) -> None:
    for _ in range(SETTING.threshold):
        ticket = board(tenant_id).admit("tool", subject, timeout_ms=1_000)
        assert isinstance(ticket, Ticket)
        board(tenant_id).record_failure(ticket, "timeout")


def let_time_pass(superuser: psycopg.Connection, tenant_id: UUID) -> None:
    """The end of the cooldown, or of a lease, is now."""
    superuser.execute(
        "UPDATE orchestrator_circuitrow SET until = clock_timestamp()"
        " WHERE tenant_id = %s AND until IS NOT NULL",
        (tenant_id,),
    )


@proves("R-BUDGET-13", part="shared by all workers")
def test_what_one_worker_found_broken_every_worker_leaves_alone(house: House) -> None:
    break_it(house.tenant.id)
    found = row_of(house.tenant.id)
    assert (found.state, found.failures, found.reason) == ("open", 3, "timeout")
    blocked = board(house.tenant.id).admit("tool", TOOL, timeout_ms=1_000)
    assert isinstance(blocked, BlockedCircuit)
    assert 0 < blocked.wait_ms <= 30_000
    assert isinstance(board(house.tenant.id).admit("tool", "mail.find", timeout_ms=1_000), Ticket)


@proves("R-BUDGET-13", part="one probe of many workers")
def test_of_many_workers_exactly_one_gets_the_probe(house: House, superuser: psycopg.Connection) -> None:
    break_it(house.tenant.id)
    let_time_pass(superuser, house.tenant.id)
    together = threading.Barrier(12)

    def ask(_: int) -> Ticket | BlockedCircuit:
        mine = board(house.tenant.id)
        together.wait(20)
        try:
            return mine.admit("tool", TOOL, timeout_ms=60_000)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(ask, range(12)))
    probes = [answer for answer in answers if isinstance(answer, Ticket)]
    assert [probe.probe for probe in probes] == [True]
    assert row_of(house.tenant.id).state == "half_open"


@proves("R-BUDGET-13", part="a lost prober")
def test_a_prober_that_died_holds_the_circuit_no_longer_than_its_lease(
    house: House, superuser: psycopg.Connection
) -> None:
    break_it(house.tenant.id)
    let_time_pass(superuser, house.tenant.id)
    lost = board(house.tenant.id).admit("tool", TOOL, timeout_ms=1_000)
    assert isinstance(lost, Ticket)
    until = row_of(house.tenant.id).until
    assert until is not None
    assert until - database_now() <= timedelta(seconds=3)
    assert isinstance(board(house.tenant.id).admit("tool", TOOL, timeout_ms=1_000), BlockedCircuit)
    let_time_pass(superuser, house.tenant.id)
    second = board(house.tenant.id).admit("tool", TOOL, timeout_ms=1_000)
    assert isinstance(second, Ticket)
    board(house.tenant.id).record_success(lost)
    assert row_of(house.tenant.id).state == "half_open"
    board(house.tenant.id).record_success(second)
    assert row_of(house.tenant.id).state == "closed"


@proves("R-BUDGET-13", part="a run whose worker died in the probe has it again under its next lease")
def test_a_probe_is_let_out_again_to_its_run_under_a_later_lease_and_to_nobody_else(
    house: House, superuser: psycopg.Connection
) -> None:
    own = house.tenant.id
    break_it(own)
    let_time_pass(superuser, own)
    prober, other = fresh_id(), fresh_id()

    def admit(run: UUID, fence: int) -> Ticket | BlockedCircuit:
        return TenantCircuits(own, None, SETTING, run, fence).admit("tool", TOOL, timeout_ms=60_000)

    first = admit(prober, 3)
    assert isinstance(first, Ticket)
    assert first.probe
    assert isinstance(admit(prober, 3), BlockedCircuit), "beside it, in the same batch"
    assert isinstance(admit(other, 9), BlockedCircuit)
    again = admit(prober, 4)
    assert isinstance(again, Ticket)
    assert again.probe
    board(own).record_failure(first, "timeout")
    assert row_of(own).state == "half_open", "the answer to the first one says nothing any more"
    board(own).record_success(again)
    assert row_of(own).state == "closed"


@proves("R-BUDGET-13", part="a probe that told nothing")
def test_after_a_probe_that_told_nothing_the_next_waits_a_moment(
    house: House, superuser: psycopg.Connection
) -> None:
    break_it(house.tenant.id)
    let_time_pass(superuser, house.tenant.id)
    (probe,) = out(house.tenant.id, 1)
    board(house.tenant.id).record_inconclusive(probe)
    turned_away = board(house.tenant.id).admit("tool", TOOL, timeout_ms=1_000)
    assert isinstance(turned_away, BlockedCircuit)
    assert turned_away.wait_ms <= 5_000
    let_time_pass(superuser, house.tenant.id)
    (second,) = out(house.tenant.id, 1)
    assert second.probe


@proves("R-BUDGET-13", part="reset with reason")
def test_an_administrator_closes_it_with_a_reason_that_is_kept(house: House) -> None:
    break_it(house.tenant.id)
    by = house.people.admin.principal.id
    reset_circuit(house.tenant.id, row_of(house.tenant.id).id, by=by, reason="the service is back")
    assert row_of(house.tenant.id).state == "closed"
    assert isinstance(board(house.tenant.id).admit("tool", TOOL, timeout_ms=1_000), Ticket)
    with tenant_transaction(house.tenant.id):
        entry = AuditEntry.objects.get(verb="circuit.reset")
    assert (entry.principal, entry.object, entry.reason) == (by, f"tool:{TOOL}", "the service is back")
    assert entry.before["state"] == "open"


def out(tenant_id: UUID, calls: int) -> list[Ticket]:
    """As many calls, let out by workers that read anew."""
    asked = [board(tenant_id).admit("tool", TOOL, timeout_ms=1_000) for _ in range(calls)]
    return [ticket for ticket in asked if isinstance(ticket, Ticket)]


@proves("R-BUDGET-13", part="late failures open nothing")
def test_calls_let_out_before_a_change_open_nothing_after_it(
    house: House, superuser: psycopg.Connection
) -> None:
    tickets = out(house.tenant.id, 12)
    assert len(tickets) == 12
    for ticket in tickets[:5]:
        board(house.tenant.id).record_failure(ticket, "timeout")
    assert (row_of(house.tenant.id).state, row_of(house.tenant.id).failures) == ("open", 3)
    reset_circuit(house.tenant.id, row_of(house.tenant.id).id, by=fresh_id(), reason="it is back")
    for ticket in tickets[5:]:
        board(house.tenant.id).record_failure(ticket, "timeout")
    assert (row_of(house.tenant.id).state, row_of(house.tenant.id).failures) == ("closed", 0)
    after = out(house.tenant.id, 6)
    for ticket in after[:3]:
        board(house.tenant.id).record_failure(ticket, "timeout")
    assert row_of(house.tenant.id).state == "open"
    let_time_pass(superuser, house.tenant.id)
    (probe,) = out(house.tenant.id, 3)
    board(house.tenant.id).record_success(probe)
    for ticket in after[3:]:
        board(house.tenant.id).record_failure(ticket, "timeout")
    assert (row_of(house.tenant.id).state, row_of(house.tenant.id).failures) == ("closed", 0)


def test_a_good_answer_of_a_side_in_health_is_not_written_down_again(house: House) -> None:
    break_it(house.tenant.id)
    reset_circuit(house.tenant.id, row_of(house.tenant.id).id, by=fresh_id(), reason="it is back")
    (ticket,) = out(house.tenant.id, 1)
    assert (ticket.changes, ticket.marked) == (row_of(house.tenant.id).changes, False)


@proves("R-BUDGET-13", part="whose a circuit is")
def test_a_tools_circuit_is_its_tenants_and_a_providers_is_everybodys(house: House) -> None:
    break_it(house.tenant.id)
    other = make_tenant()
    assert isinstance(board(other.id).admit("tool", TOOL, timeout_ms=1_000), Ticket)
    with pytest.raises(NotFound):
        reset_circuit(other.id, row_of(house.tenant.id).id, by=fresh_id(), reason="not mine")
    provider = f"openai {fresh_id()}.example"
    board(house.tenant.id).trip("model", provider, "unreachable")
    assert isinstance(board(other.id).admit("model", provider, timeout_ms=1_000), BlockedCircuit)


@proves("R-BUDGET-13", part="a shared circuit is tried, not closed, by one tenant's word")
def test_an_administrator_has_a_shared_circuit_tried_by_one_call_and_closes_it_for_nobody(
    house: House,
) -> None:
    other, provider = make_tenant(), f"openai {fresh_id()}.example"
    board(house.tenant.id).trip("model", provider, "unreachable")
    row = row_of(other.id, provider, "model")
    found = reset_circuit(other.id, row.id, by=fresh_id(), reason="they have repaired it")
    assert (found.state, found.failures) == ("open", row.failures)
    probe = board(other.id).admit("model", provider, timeout_ms=1_000)
    assert isinstance(probe, Ticket)
    assert probe.probe
    assert isinstance(board(house.tenant.id).admit("model", provider, timeout_ms=1_000), BlockedCircuit)
    again = reset_circuit(other.id, row.id, by=fresh_id(), reason="once more")
    assert again.state == "half_open"
    assert isinstance(board(house.tenant.id).admit("model", provider, timeout_ms=1_000), BlockedCircuit)


@proves("R-BUDGET-13", part="a shared circuit is tried once in a cooldown, whoever asks")
def test_a_shared_circuit_is_not_tried_without_pause(
    house: House, superuser: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(
        "orchestrator.outbound.actions._record_state_change",
        lambda subject, state, reason: told.append(state),
    )
    provider = f"openai {fresh_id()}.example"
    board(house.tenant.id).trip("model", provider, "unreachable")
    row = row_of(house.tenant.id, provider, "model")
    for tenant_id in (house.tenant.id, make_tenant().id):
        reset_circuit(tenant_id, row.id, by=fresh_id(), reason="they have repaired it")
        probe = board(tenant_id).admit("model", provider, timeout_ms=1_000)
        if tenant_id != house.tenant.id:
            assert isinstance(probe, BlockedCircuit)
            assert probe.wait_ms > 1_000
        else:
            assert isinstance(probe, Ticket)
            board(tenant_id).record_failure(probe, "unreachable")
    assert told == ["open", "half_open", "open"]
    with tenant_transaction(house.tenant.id):
        assert AuditEntry.objects.get(verb="circuit.reset").after == {"state": "open", "tried": True}
    superuser.execute(
        "UPDATE orchestrator_circuitrow SET tried_at = tried_at - interval '1 hour' WHERE id = %s", (row.id,)
    )
    reset_circuit(house.tenant.id, row.id, by=fresh_id(), reason="once more")
    last = board(house.tenant.id).admit("model", provider, timeout_ms=1_000)
    assert isinstance(last, Ticket)
    board(house.tenant.id).record_success(last)


@proves("R-BUDGET-13", part="an overrun is the tenant's own")
def test_what_one_tenant_was_charged_beyond_shuts_its_own_use_alone(house: House) -> None:
    other, provider = make_tenant(), f"openai {fresh_id()}.example"
    board(house.tenant.id).trip("use", provider, "overrun")
    assert isinstance(board(house.tenant.id).admit("use", provider, timeout_ms=1_000), BlockedCircuit)
    for kind in KINDS:
        assert isinstance(board(other.id).admit(kind, provider, timeout_ms=1_000), Ticket)
    assert isinstance(board(house.tenant.id).admit("model", provider, timeout_ms=1_000), Ticket)
    row = row_of(house.tenant.id, provider, "use")
    with pytest.raises(NotFound):
        reset_circuit(other.id, row.id, by=fresh_id(), reason="not mine")
    assert reset_circuit(house.tenant.id, row.id, by=fresh_id(), reason="looked at").state == "closed"


MOVES = st.lists(
    st.tuples(
        st.sampled_from(["probe", "probe", "fail", "fail", "fail", "succeed", "release", "trip", "wait"]),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=25,
)


@proves("R-BUDGET-13", part="the rows follow the rules")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=MOVES)
def test_the_rows_move_as_the_rules_say(
    house: House, superuser: psycopg.Connection, moves: list[tuple[str, int]]
) -> None:
    """Each move is made by statement and by rule; state, failures and change number stay the same."""
    subject = f"t{fresh_id().hex}"
    circuits, model = board(house.tenant.id), Circuit()
    for move, back in moves:
        circuits.known, now = None, database_now()
        ticket = Ticket(kind="tool", subject=subject, changes=max(0, model.changes - back), marked=True)
        if move == "probe":
            taken = circuits.admit("tool", subject, timeout_ms=60_000)
            probe = rules.with_probe(model, now, timedelta(seconds=62))
            assert (isinstance(taken, Ticket) and taken.probe) == (probe is not None)
            model = probe or model
        elif move == "fail":
            circuits.record_failure(ticket, "timeout")
            model = rules.with_failure(model, ticket.changes, now, "timeout", SETTING)
        elif move == "succeed":
            circuits.record_success(ticket)
            model = rules.with_success(model, ticket.changes)
        elif move == "release":
            circuits.record_inconclusive(ticket)
            model = rules.with_probe_released(model, ticket.changes, now, SETTING)
        elif move == "trip":
            circuits.trip("tool", subject, "overrun")
            model = rules.with_circuit_trip(model, now, "overrun", SETTING)
        elif model.until is not None:
            let_time_pass(superuser, house.tenant.id)
            model = model.evolve(until=now)
        with tenant_transaction(house.tenant.id):
            row = CircuitRow.objects.filter(id=circuit_id(house.tenant.id, "tool", subject)).first()
        stands = ("closed", 0, 0) if row is None else (row.state, row.failures, row.changes)
        assert stands == (model.state, model.failures, model.changes)


@pytest.fixture
def world(house: House, company: Company) -> Iterator[World]:
    """A furnished house whose tools talk to the demo company."""
    with company_at(company.url):
        yield make_world(house)


def refund(world: World) -> UUID:
    return world.submit("support-refund", "Refund the order", inputs={"order_id": "A-1001"})


@proves("R-BUDGET-13", part="in the run and its replay")
def test_a_run_of_another_worker_meets_the_open_circuit_and_replays_so(
    world: World, company: Company
) -> None:
    for _ in range(5):
        board(world.id).record_failure(Ticket(kind="tool", subject=TOOL), "crashed")
    run = refund(world)
    world.drive(run, fresh_worker())
    tripped = [body for body in world.said(run, "breaker_tripped") if body["breaker"] == "circuit"]
    assert [(body["reason"], body["subject"]) for body in tripped] == [("open", TOOL)]
    assert company.requests("orders") == []
    world.sound(run)


def test_failures_of_runs_add_up_and_a_good_answer_ends_the_row(world: World, company: Company) -> None:
    company.faults("orders", "fail")
    world.drive(refund(world))
    assert row_of(world.id).failures > 0
    company.faults("orders", "none")
    with tenant_transaction(world.id):
        CircuitRow.objects.update(state="closed", until=None, failures=1)
    world.drive(refund(world), fresh_worker())
    assert row_of(world.id).failures == 0


def test_a_run_counts_failures_behind_a_circuit_that_was_closed_again(world: World, company: Company) -> None:
    break_it(world.id)
    reset_circuit(world.id, row_of(world.id).id, by=fresh_id(), reason="it is back")
    company.faults("orders", "fail")
    world.drive(refund(world))
    assert row_of(world.id).failures > 0


@proves("SPEED", part="healthy calls write no circuit")
def test_a_healthy_run_leaves_no_row(world: World) -> None:
    world.approve_all(refund(world))
    with tenant_transaction(world.id):
        assert not CircuitRow.objects.filter(tenant_id=world.id).exists()
