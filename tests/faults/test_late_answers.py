"""Answers that come too late, of a company that really gives them: after its run was cancelled, after another
worker has the run, after the deadline. Judged by the company's own log and by the run's own books (G9)."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import connection
from pytest_django import Settings

from approvals.models import Request
from budgets.models import Entry
from orchestrator.core.domain.run_state import RunState
from orchestrator.runs.actions.run_signals import cancel
from orchestrator.runs.models.run import Intent
from orchestrator.runs.queries.runs import state_now
from orchestrator.worker.run_loop import Worker
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doors.demo.test_faults import eventually
from tests.doubles.company import Company
from tests.factories.dying import Killed
from tests.factories.foreign import Obedient, called, foreign, onwards, to_the_end
from tests.factories.hurry import in_a_hurry, in_no_hurry
from tests.factories.world import World, company_at, fresh_worker, make_world
from tests.faults.cases import ASKED, BLIND, FINDABLE, KEYED, READ, UNTIL_TOLD
from tests.journeys.interleaving.clock import Clock
from tests.proves import proves

EVERY_TOOL = pytest.mark.parametrize("tool", [READ, KEYED, FINDABLE, BLIND])


@dataclass(frozen=True, kw_only=True)
class Standing:
    """All that a run is and has: its state but for its version, its row, its money, and what it has asked of
    the world and of people."""

    state: RunState
    row: tuple[str, str, str, str]
    entries: list[Any]
    intents: list[Any]
    requests: list[Any]


@dataclass(kw_only=True)
class Play:
    """A run of one tool in a company that holds its answer back."""

    world: World
    company: Company
    clock: Clock
    run: UUID
    tool: str

    @property
    def service(self) -> str:
        """Where the tool's calls go."""
        return ASKED[self.tool][0]

    def sent(self) -> list[int | None]:
        """What the company answered to each request of the tool itself, without look-ups; None: not yet."""
        wanted = "GET" if self.tool == READ else "POST"
        return [one["status"] for one in self.company.requests(self.service) if one["method"] == wanted]

    def standing(self) -> Standing:
        """The run as it is now."""
        found = self.world.run(self.run)
        with tenant_transaction(self.world.id):
            entries = (
                Entry.objects.filter(run_id=self.run).order_by("id").values_list("id", "cause", "amounts")
            )
            intents = Intent.objects.filter(run_id=self.run).order_by("id").values_list("id", flat=True)
            requests = (
                Request.objects.filter(run_id=self.run).order_by("id").values_list("id", "kind", "status")
            )
            return Standing(
                state=state_now(self.run).evolve(version=0), entries=list(entries), intents=list(intents),
                requests=list(requests), row=(found.status, found.terminal_code, found.reason, found.result),
            )  # fmt: skip

    @contextmanager
    def held(self) -> Iterator["Future[None]"]:
        """A worker is in the middle of the call, and loses its lease; the company answers when told to."""
        self.company.faults(self.service, "hang", times=1, on="all" if self.tool == READ else "writes")
        with in_no_hurry(self.tool), ThreadPoolExecutor(1) as pool:
            out = pool.submit(_advance, fresh_worker(), self.run)
            self.company.wait_until_held(self.service)
            self.clock.lease_dies(self.run)
            try:
                yield out
            finally:
                self.answer()

    def answer(self) -> None:
        """The company goes on with what it held."""
        self.company.faults(self.service, "none")


def _advance(worker: Worker, run: UUID) -> None:
    try:
        worker.advance(run)
    finally:
        connection.close()


def _die_of_the_first_reply(play: Play) -> None:
    """The model was asked, so the next effect is the call."""
    with pytest.raises(Killed):
        replace(play.world.worker, name=fresh_id().hex, fault=_dies).advance(play.run)
    play.clock.lease_dies(play.run)


def _dies(point: str) -> None:
    if point == "performed":
        raise Killed(point)


@pytest.fixture
def play(
    tool: str, house: House, company: Company, superuser: psycopg.Connection, settings: Settings
) -> Iterator[Play]:
    """The run, agreed to where people must agree."""
    with company_at(company.url), foreign(settings, Obedient(called(tool, **ASKED[tool][1]))):
        world = make_world(house)
        run = world.submit("tool-loop", "Do what the model says, for a@b.example and the account refunds.")
        found = Play(world=world, company=company, clock=Clock(superuser), run=run, tool=tool)
        if tool == READ:
            _die_of_the_first_reply(found)
        else:
            onwards(world, run)
            (asked,) = world.open_requests(run)
            world.decide(asked, world.people.approver)
        yield found


def judge(play: Play, before: Standing, effects: int) -> None:
    """The late answer stands in the trace, once, and nothing else is different."""
    play.world.drive(play.run)
    (late,) = play.world.said(play.run, "late_outcome")
    assert late["effect"] in {call["effect"] for call in play.world.said(play.run, "call_attempted")}
    assert late["observation"] is not None
    assert play.standing() == before
    assert len(play.company.effects(play.service)) == effects
    play.world.sound(play.run)


def many(play: Play) -> int:
    """How often the company does what the run asks for: not at all where it only reads, else once."""
    return 0 if play.tool == READ else 1


@proves("G9", part="after a cancel, by the company's own log")
@EVERY_TOOL
def test_an_answer_after_its_run_was_cancelled_is_recorded_and_changes_nothing(play: Play) -> None:
    with play.held() as out:
        cancel(play.world.id, play.run, by=play.world.people.admin.id, reason="Not any more.")
        to_the_end(play.world, play.run, "cancel")
        before = play.standing()
        assert before.row[1] == "USER_CANCEL"
        assert None in play.sent()
        play.answer()
        out.result(20)
    assert None not in play.sent()
    judge(play, before, many(play))


@proves("G9", part="after another worker has the run, by the company's own log")
@EVERY_TOOL
def test_an_answer_to_a_worker_that_lost_its_run_is_recorded_and_changes_nothing(play: Play) -> None:
    with play.held() as out:
        found = onwards(play.world, play.run)
        before = play.standing()
        # Where a change cannot be made again under its key, a person is asked what became of it.
        asked = [request.kind for request in play.world.open_requests(play.run)]
        assert (asked, found.terminal_code) in (([], "SUCCESS"), (["reconciliation"], ""))
        play.answer()
        out.result(20)
    judge(play, before, many(play))


@pytest.mark.slow
@proves("G9", part="after the deadline, by the company's own log")
@EVERY_TOOL
def test_an_answer_after_the_deadline_reaches_nobody_and_changes_nothing(play: Play) -> None:
    play.company.faults(
        play.service, "slow", seconds=UNTIL_TOLD, times=1, on="all" if play.tool == READ else "writes"
    )
    with in_a_hurry(play.tool):
        onwards(play.world, play.run)
    before = play.standing()
    assert None in play.sent()
    # Where keys are honoured it was made under the same one meanwhile.
    assert len(play.company.effects(play.service)) == (play.tool == KEYED)
    play.answer()
    assert eventually(lambda: None not in play.sent())
    play.world.drive(play.run)
    assert play.standing() == before
    assert len(play.company.effects(play.service)) == many(play)
    found = to_the_end(play.world, play.run, "happened")
    assert (found.terminal_code, len(play.company.effects(play.service))) == ("SUCCESS", many(play))
    play.world.sound(play.run)
