"""A saga of four steps that fails at the last: taken back in reverse, each once, by the company's own log
(R-TOOL-15)."""

from dataclasses import replace
from uuid import UUID

import psycopg
import pytest

from tenancy.core.event_kinds import UNDO_FAILED
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Notice
from tests.doubles.company import Company
from tests.factories.dying import Killed, dies_at
from tests.factories.foreign import to_the_end
from tests.factories.world import World
from tests.journeys.interleaving.clock import Clock
from tests.proves import proves

CANCELLED, OPEN = "A-1011", "A-1006"
STEPS = [("stock", "hold"), ("payments", "hold"), ("mail", "send")]
BACK = [("payments", "release"), ("stock", "release")]


def submitted(world: World, order: str = CANCELLED) -> UUID:
    return world.submit("order-fulfilment", "Ship the order", inputs={"order_id": order})


def before_the_last(world: World, order: str = CANCELLED) -> UUID:
    """A run whose next effect is the shipment, agreed to."""
    run = submitted(world, order)
    for _ in range(4):
        world.drive(run)
        (asked,) = world.open_requests(run)
        world.decide(asked, world.people.approver)
    return run


def done(company: Company) -> list[tuple[str, str]]:
    """What the company did, in order."""
    return [(effect["service"], effect["action"]) for effect in company.effects()]


def test_an_order_that_can_be_shipped_is_shipped(world: World, company: Company) -> None:
    run = submitted(world, OPEN)
    found = world.approve_all(run)
    assert found.terminal_code == "SUCCESS", found.reason
    assert done(company) == [*STEPS, ("shipping", "ship")]
    world.sound(run)


@proves("R-TOOL-15", part="a saga of four steps")
def test_the_last_step_fails_and_what_was_held_is_let_go_of(world: World, company: Company) -> None:
    run = before_the_last(world)
    found = world.drive(run)
    assert found.terminal_code == "IMPOSSIBLE"
    assert done(company) == STEPS + BACK
    told = world.result(run)
    assert [entry["tool"] for entry in told["undone"]] == ["payments.authorize", "stock.reserve"]
    assert [(entry["tool"], entry["why"]) for entry in told["not_undone"]] == [("mail.send", "irreversible")]
    keys = [effect["key"] for effect in company.effects()]
    assert len(set(keys)) == len(keys)
    world.sound(run)


def told_of(world: World) -> list[list[str]]:
    """What people of the house were told was left behind, notice by notice."""
    with tenant_transaction(world.id):
        rows = Notice.objects.filter(kind=UNDO_FAILED).order_by("at", "id").values_list("data", flat=True)
        assert all(data["count"] == len(data["left"]) for data in rows)
        return [[one["tool"] for one in data["left"]] for data in rows]


POINTS = [
    ("committed", 2), ("before_dispatch", 2), ("sent", 2), ("performed", 2), ("before_commit", 3),
    ("committed", 3), ("before_dispatch", 3), ("sent", 3), ("before_commit", 5),
]  # fmt: skip


@proves("R-TOOL-15", part="each once, also when the worker dies in between")
@pytest.mark.parametrize(("point", "times"), POINTS)
def test_a_worker_that_dies_on_the_way_back_undoes_nothing_twice(
    world: World, company: Company, superuser: psycopg.Connection, point: str, times: int
) -> None:
    run = before_the_last(world)
    mortal = replace(world.worker, name=fresh_id().hex, fault=dies_at(point, times))
    with pytest.raises(Killed):
        mortal.advance(run)
    Clock(superuser).lease_dies(run)
    found = to_the_end(world, run)
    assert found.terminal_code == "IMPOSSIBLE"
    assert done(company) == STEPS + BACK
    assert told_of(world) == [["mail.send"]]
    world.sound(run)


@proves("R-TOOL-15", part="the compensating service is away")
def test_what_cannot_be_let_go_of_is_left_and_the_rest_goes_on(world: World, company: Company) -> None:
    run = before_the_last(world)
    company.faults("payments", "fail", on="writes")
    found = to_the_end(world, run)
    assert found.terminal_code == "IMPOSSIBLE"
    assert done(company) == [*STEPS, ("stock", "release")]
    left = {entry["tool"]: entry["why"] for entry in world.result(run)["not_undone"]}
    assert left == {"mail.send": "irreversible", "payments.authorize": "undo_in_doubt"}
    assert told_of(world) == [["mail.send"], ["payments.authorize"]]
    assert ("compensation", "undo_in_doubt") in [
        (said["breaker"], said["reason"]) for said in world.said(run, "breaker_tripped")
    ]
    world.sound(run)
