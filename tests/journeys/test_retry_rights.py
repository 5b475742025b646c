"""Who had a run begun again decides on it no more than who submitted it; and a worker that dies changes
nothing."""

from dataclasses import replace
from uuid import UUID

import psycopg
import pytest
from django.db import IntegrityError

from approvals.core.errors import NotYours
from approvals.models import Decision, Request
from approvals.queries.authority import build_decidable_filter
from approvals.queries.people import decider_of
from tenancy.actions import add_member
from tenancy.core.roles import Role
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.queries import standing_of
from tests.doubles.company import Company
from tests.factories.dying import Killed, dies_at
from tests.factories.retrying import retried
from tests.factories.world import World
from tests.journeys.interleaving.clock import Clock
from tests.proves import proves


def failed(world: World, company: Company) -> UUID:
    """A refund that failed before the money."""
    company.faults("policy", "refuse", times=1)
    run = world.submit("support-refund", "Refund the order", inputs={"order_id": "A-1001"})
    assert world.drive(run).terminal_code == "IMPOSSIBLE"
    return run


def asked(world: World, run: UUID) -> Request:
    """What the run asks of people."""
    world.drive(run)
    (request,) = world.open_requests(run)
    return request


@proves("R-APPR-5", part="never on a run that one had begun again")
@proves("R-SESS-9", part="separation of duties")
def test_whoever_retried_it_decides_no_more_than_who_submitted_it(world: World, company: Company) -> None:
    people = world.people
    # Whoever operates may decide as well; on this run not.
    retrier = people.approver
    add_member(world.id, retrier.person, Role.OPERATOR)
    again = retried(world, failed(world, company), by=retrier)
    request = asked(world, again)
    for nobody in (retrier, people.submitter):
        with pytest.raises(NotYours):
            world.decide(request, nobody)
    with tenant_transaction(world.id):
        offered = {
            who.id: Request.objects.filter(build_decidable_filter(decider_of(standing))).count()
            for who in (retrier, people.second_approver)
            if (standing := standing_of(world.id, who.id)) is not None
        }
    assert offered == {retrier.id: 0, people.second_approver.id: 1}
    world.decide(request, people.second_approver)
    assert [effect["service"] for effect in company.effects()] == []
    world.drive(again)
    assert [effect["service"] for effect in company.effects()] == ["payments"]


@proves("R-APPR-5", part="never on a run that one had begun again, in the database")
def test_the_database_takes_no_word_of_whoever_retried_it(world: World, company: Company) -> None:
    who = world.people.operator
    request = asked(world, retried(world, failed(world, company), by=who))
    with tenant_transaction(world.id), pytest.raises(IntegrityError, match="not this person's to make"):
        Decision.objects.create(
            tenant_id=world.id, request_id=request.id, principal=who.id, owner=who.person.id, role="operator",
            kind="approve", packet_digest=request.packet_digest, previous=request.packet_digest,
            at=request.created_at, digest="0" * 64,
        )  # fmt: skip


@proves("R-APPR-5", part="never on a run of a line that one had begun again")
def test_nor_does_whoever_retried_a_run_before_it(world: World, company: Company) -> None:
    people = world.people
    add_member(world.id, people.approver.person, Role.OPERATOR)
    company.faults("policy", "refuse", times=2)
    run = world.submit("support-refund", "Refund the order", inputs={"order_id": "A-1001"})
    assert world.drive(run).terminal_code == "IMPOSSIBLE"
    second = retried(world, run, by=people.approver)
    assert world.drive(second).terminal_code == "IMPOSSIBLE"
    third = retried(world, second, by=people.operator)
    request = asked(world, third)
    assert set(request.retriers) == {people.approver.id, people.operator.id}
    assert set(request.retrier_owners) == {people.approver.person.id, people.operator.person.id}
    with pytest.raises(NotYours):
        world.decide(request, people.approver)
    with tenant_transaction(world.id):
        standing = standing_of(world.id, people.approver.id)
        assert standing is not None
        assert not Request.objects.filter(
            build_decidable_filter(decider_of(standing)), id=request.id
        ).exists()
    world.decide(request, people.second_approver)


FORGOTTEN = {
    "all": {"retriers": "'{}'", "retrier_owners": "'{}'"},
    "the one before": {"retriers": "retriers[1:1]"},
    "the people": {"retrier_owners": "'{}'"},
    "none, and one that is not": {"retriers": "retriers || gen_random_uuid()"},
}


@proves("R-APPR-5", part="never on a run of a line that one had begun again, in the database")
@pytest.mark.parametrize("name", FORGOTTEN)
def test_the_database_takes_no_request_that_forgets_who_retried_it(
    world: World, company: Company, superuser: psycopg.Connection, name: str
) -> None:
    company.faults("policy", "refuse", times=2)
    run = world.submit("support-refund", "Refund the order", inputs={"order_id": "A-1001"})
    world.drive(run)
    second = retried(world, run, by=world.people.approver)
    world.drive(second)
    request = asked(world, retried(world, second, by=world.people.operator))
    columns = [str(field.column) for field in Request._meta.concrete_fields]
    given = {column: f'"{column}"' for column in columns}
    given |= {"id": "gen_random_uuid()", "call_id": "'c99'"} | FORGOTTEN[name]
    statement = (
        f"INSERT INTO approvals_request ({', '.join(given)})"
        f" SELECT {', '.join(given.values())} FROM approvals_request WHERE id = %s"
    )
    with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="names all who had its run"):
        superuser.execute(statement, [request.id])


@proves("R-SESS-8", part="a worker that dies right after a retry")
@pytest.mark.parametrize("point", ["claimed", "committed", "performed", "before_commit"])
def test_a_worker_that_dies_right_after_a_retry_changes_nothing(
    world: World, company: Company, superuser: psycopg.Connection, point: str
) -> None:
    again = retried(world, failed(world, company))
    with pytest.raises(Killed):
        replace(world.worker, name=fresh_id().hex, fault=dies_at(point)).advance(again)
    Clock(superuser).lease_dies(again)
    assert world.approve_all(again).terminal_code == "SUCCESS"
    assert [effect["service"] for effect in company.effects()] == ["payments", "mail"]
    world.sound(again)
