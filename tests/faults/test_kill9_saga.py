"""Worker processes that are killed with SIGKILL on the way back of a saga: what a run holds is let go of
once, newest first, by the company's own log, and what cannot be called back is reported (R-TOOL-15)."""

from contextlib import ExitStack
from time import monotonic, sleep
from typing import Any
from uuid import UUID

import pytest

from tests.conftest import House
from tests.doubles.company import Company
from tests.factories.foreign import to_the_end
from tests.factories.world import World, company_at, make_world
from tests.faults.test_kill9 import PATIENCE_SECONDS, process, sleep_until_dead, told
from tests.journeys.test_saga import before_the_last
from tests.proves import proves
from tests.servers import TestServers

pytestmark = pytest.mark.slow

# Where a worker dies: with the first of two done and unheard of, between the two, and with both done.
DEATHS = {
    "the first is done": ("payments", "commit_then_hang"),
    "between the two": ("stock", "hang"),
    "the second is done": ("stock", "commit_then_hang"),
}


@pytest.mark.timeout(1200)
@proves("R-TOOL-15", part="kill -9 on the way back")
def test_processes_that_die_on_the_way_back_leave_each_thing_undone_once(
    house: House, company: Company, servers: TestServers
) -> None:
    with company_at(company.url):
        world = make_world(house)
        runs, holds = {}, {}
        for death in DEATHS:
            before = len(company.effects())
            runs[death] = before_the_last(world)
            holds[death] = [hold_of(one) for one in company.effects()[before:] if one["action"] == "hold"]
        with ExitStack() as processes:
            workers = {
                death: processes.enter_context(process(servers, run, INTERLOCK_DEMO_URL=company.url))
                for death, run in runs.items()
            }
            for death, (service, mode) in DEATHS.items():
                company.faults(service, mode, times=1, on="writes")
                told(workers[death])
                until_held(company, service, world, runs[death])
                assert world.run(runs[death]).lease_owner
                workers[death].kill()
                left_alone(company, service)
        assert [said(effect) for effect in company.effects() if effect["action"] == "release"] == [
            ("payments", holds["the first is done"][1]),
            ("payments", holds["between the two"][1]),
            ("payments", holds["the second is done"][1]),
            ("stock", holds["the second is done"][0]),
        ]
        sleep_until_dead(world, runs)
        for death, run in runs.items():
            judged(world, company, run, holds[death])
    assert company.effects("shipping") == []
    # Letting go twice leaves one line in the log: that it was asked for under one key is what says once.
    for service in ("payments", "stock"):
        asked = [one for one in company.requests(service) if one["path"].endswith("/releases")]
        assert len(asked) > len(runs), "a call that was lost with its worker was made again"
        assert len({one["key"] for one in asked}) == len(runs), service
    keys = [effect["key"] for effect in company.effects()]
    assert len(set(keys)) == len(keys)


def judged(world: World, company: Company, run: UUID, holds: list[str]) -> None:
    """Another worker finishes a run: both holds let go of once, the money first; the message reported."""
    found = to_the_end(world, run)
    assert found.terminal_code == "IMPOSSIBLE", found.reason
    stock, money = holds
    undone = [said(effect) for effect in company.effects() if effect["action"] == "release"]
    assert [one for one in undone if one[1] in holds] == [("payments", money), ("stock", stock)]
    told = world.result(run)
    assert [entry["tool"] for entry in told["undone"]] == ["payments.authorize", "stock.reserve"]
    assert [(entry["tool"], entry["why"]) for entry in told["not_undone"]] == [("mail.send", "irreversible")]
    assert [one["resolution"] for one in world.said(run, "call_recovered")] == ["repeated"]
    assert [effect["reference"] for effect in company.effects("mail")].count(str(run)) == 1
    world.sound(run)


def hold_of(effect: dict[str, Any]) -> str:
    """The id of the hold that an effect is about."""
    found: str = effect["body"]["id"]
    return found


def said(effect: dict[str, Any]) -> tuple[str, str]:
    """Which service let go of which hold."""
    return effect["service"], hold_of(effect)


def until_held(company: Company, service: str, world: World, run: UUID) -> None:
    """Wait until the company holds the worker's call; where the run got elsewhere, say where."""
    until = monotonic() + PATIENCE_SECONDS
    while not company.get("/faults")["held"].get(service, 0):
        found = world.run(run)
        assert not world.open_requests(run), world.kinds(run)[-12:]
        assert monotonic() < until, (found.status, world.kinds(run)[-12:])
        sleep(0.05)


def left_alone(company: Company, service: str) -> None:
    """Wait until the company has noticed that nobody waits for its answer any more: a request that is held
    before it commits would otherwise be let through by the next fault of the service."""
    until = monotonic() + PATIENCE_SECONDS
    while company.get("/faults")["held"].get(service, 0):
        assert monotonic() < until
        sleep(0.02)
