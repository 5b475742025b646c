"""A yes that could be taken back, through the ring: the run waits for it, and goes on whatever is lost."""

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest
from django.db import IntegrityError

from approvals.actions.undo import undo_deferred_approval
from approvals.models import Request
from orchestrator.commit.approval_timers import take_words_of
from orchestrator.tenants.queries.cross_tenant import deferred_runs
from orchestrator.worker.sweeper import Sweeper
from tenancy.db.ids import fresh_id
from tests.conftest import House
from tests.doors.pages.browsers import browser, words
from tests.doubles.company import Company
from tests.factories.undoing import kept_of, let_undo, pass_time, put_class
from tests.factories.world import World, company_at, make_world
from tests.proves import proves

Hints = list[tuple[UUID, float]]


@pytest.fixture
def world(house: House, company: Company) -> Iterator[World]:
    """A furnished house where a yes can be taken back for ten seconds."""
    with company_at(company.url):
        made = make_world(house)
        let_undo(made.id, made.people.admin)
        yield made


@pytest.fixture
def hints(monkeypatch: pytest.MonkeyPatch) -> Hints:
    """What workers were told to look at, and in how many seconds; no message arrives."""
    heard: Hints = []

    def hear(run: UUID, *, after: float) -> bool:
        heard.append((run, after))
        return False

    monkeypatch.setattr("orchestrator.receivers.take_later", hear)
    monkeypatch.setattr("orchestrator.commit.approval_timers.take_later", hear)
    return heard


def said_yes(world: World, superuser: psycopg.Connection) -> Request:
    """A refund that waits, of the least class for once, with a yes that can be taken back."""
    run = world.submit("support-refund", "Refund the order", inputs={"order_id": "A-1001"})
    world.drive(run)
    (request,) = world.open_requests(run)
    put_class(superuser, request, "local_write")
    assert world.decide(request, world.people.approver).status == "pending"
    return request


@proves("R-APPR-14", part="a yes that could be taken back is found when its message is lost")
def test_the_sweep_lets_it_take_effect_when_no_message_came(
    world: World, superuser: psycopg.Connection, hints: Hints, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = said_yes(world, superuser)
    run = request.run_id
    assert hints == [(run, 10.0)]
    assert (world.drive(run).status, run in deferred_runs(100)) == ("awaiting_gate", False)
    pass_time(superuser, request)
    assert run in deferred_runs(100)
    monkeypatch.setattr("orchestrator.worker.sweeper.deferred_runs", lambda _: [run])
    monkeypatch.setattr("orchestrator.worker.sweeper.due_runs", lambda _: [])
    assert Sweeper(world.worker).tick() == 1
    assert world.kinds(run).count("approval_decided") == 1
    assert world.open_requests(run)[0].tool == "mail.send"
    put_class(superuser, request, request.risk)
    world.sound(run)


def test_the_sweep_goes_on_where_one_run_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[UUID] = []
    good, bad = fresh_id(), fresh_id()

    def look(run: UUID) -> None:
        looked.append(run)
        if run == bad:
            raise IntegrityError

    def no_runs(_: int) -> list[UUID]:
        raise IntegrityError

    monkeypatch.setattr("orchestrator.worker.sweeper.take_words_of", look)
    monkeypatch.setattr("orchestrator.worker.sweeper.deferred_runs", lambda _: [bad, good])
    monkeypatch.setattr("orchestrator.worker.sweeper.due_runs", no_runs)
    sweep = Sweeper(world.worker)
    sweep.tick()
    assert looked == [bad, good]
    sweep.stop()
    sweep.tick()
    assert looked == [bad, good]


def test_a_message_that_comes_early_is_sent_again(
    world: World, superuser: psycopg.Connection, hints: Hints
) -> None:
    request = said_yes(world, superuser)
    take_words_of(request.run_id)
    (_, again) = hints
    assert again[0] == request.run_id
    assert timedelta(0) < timedelta(seconds=again[1]) <= timedelta(seconds=10)
    assert [one.fate for one in kept_of(request)] == ["stands"]


def test_a_run_s_page_says_to_other_reviewers_whose_yes_stands(
    world: World, superuser: psycopg.Connection, hints: Hints
) -> None:
    request, people = said_yes(world, superuser), world.people
    for who, card in ((people.approver, True), (people.second_approver, True), (people.auditor, False)):
        page = words(browser(who).get(f"/runs/{request.run_id}"))
        assert ("takes effect" in page, "Decide here" in page) == (card, card)


def test_what_was_taken_back_sends_nothing(
    world: World, company: Company, superuser: psycopg.Connection, hints: Hints
) -> None:
    request = said_yes(world, superuser)
    undo_deferred_approval(world.id, request.id, world.people.approver.principal.id)
    pass_time(superuser, request)
    take_words_of(request.run_id)
    assert world.drive(request.run_id).status == "awaiting_gate"
    assert "approval_decided" not in world.kinds(request.run_id)
    world.decide(request, world.people.approver, "reject", reason="No.")
    world.drive(request.run_id)
    assert world.said(request.run_id, "approval_decided")[0]["decision"] == "reject"
    put_class(superuser, request, request.risk)
    world.sound(request.run_id)
