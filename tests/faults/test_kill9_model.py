"""A worker process that is killed with SIGKILL while a model has its request and has not answered: the lost
call is charged as it was reserved, its repetition as it was measured, neither twice (B3)."""

from decimal import Decimal
from threading import Event
from uuid import UUID

import psycopg
import pytest
from pytest_django import Settings

from budgets.core.dimension import Dimension
from budgets.core.posting import Cause
from budgets.ledger_verification import verify_ledger, verify_windows
from budgets.queries import EntryView, get_usage_lines, list_run_entries
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doubles.http_server import Reply, Seen
from tests.doubles.openai_server import OpenAIServer, said
from tests.doubles.openai_server import usage as reported
from tests.factories.foreign import foreign, onwards
from tests.factories.world import World, make_world
from tests.faults.test_kill9 import PATIENCE_SECONDS, process, told
from tests.journeys.interleaving.clock import Clock
from tests.proves import proves
from tests.servers import TestServers

pytestmark = pytest.mark.slow

PROMPT, COMPLETION = 120, 30
HELD_SECONDS = 600.0


class Holding(OpenAIServer):
    """A model that never answers the first request and every other at once."""

    def __init__(self) -> None:
        super().__init__()
        self.holds = Event()

    def answer(self, seen: Seen) -> Reply:
        """The answer, for the first so late that nobody is there to hear it."""
        self.play(said("It is done.", usage=reported(PROMPT, COMPLETION)))
        found = super().answer(seen)
        if self.holds.is_set():
            return found
        self.holds.set()
        return found.after(HELD_SECONDS)


def calls_of(world: World, run: UUID) -> list[tuple[EntryView, EntryView]]:
    """Each model call's reservation and its one end, in order; the ledger is whole."""
    with tenant_transaction(world.id):
        assert verify_ledger(run, open_effects=()) == []
        assert verify_windows() == []
        entries = list_run_entries(run)
    held = [entry for entry in entries if entry.cause == Cause.RESERVE and "model_turns" in entry.reserved]
    ends = {
        entry.effect_id: [one for one in entries if one.effect_id == entry.effect_id and one is not entry]
        for entry in held
    }
    assert all(len(found) == 1 for found in ends.values()), "a call is settled once"
    return [(entry, ends[entry.effect_id][0]) for entry in held]


@pytest.mark.timeout(600)
@proves("B3", part="kill -9 during a model call")
@proves("R-BUDGET-3", part="kill -9 during a model call")
def test_a_call_lost_with_its_process_is_charged_as_reserved_and_its_repetition_as_measured(
    house: House, superuser: psycopg.Connection, servers: TestServers, settings: Settings
) -> None:
    with foreign(settings, Holding()) as model:
        assert isinstance(model, Holding)
        world = make_world(house)
        run = world.submit("tool-loop", "Say that it is done.")
        with process(servers, run, OPENAI_BASE_URL=model.url) as worker:
            told(worker)
            assert model.holds.wait(PATIENCE_SECONDS), "the request never came"
        Clock(superuser).lease_dies(run)
        found = onwards(world, run)
        asked = len(model.documents)
    assert found.terminal_code == "SUCCESS", found.reason
    (held, lost), (again, repeated) = calls_of(world, run)
    assert asked == 2
    assert [said["resolution"] for said in world.said(run, "call_recovered")] == ["lost"]
    assert (lost.cause, lost.unknown) == (Cause.SETTLE, True)
    assert {name: lost.used[name] for name in held.reserved} == dict(held.reserved)
    assert (repeated.cause, repeated.unknown) == (Cause.SETTLE, False)
    measured = {"model_turns": 1, "input_tokens": PROMPT, "output_tokens": COMPLETION}
    assert {name: repeated.used[name] for name in measured} == measured
    assert Decimal(0) < repeated.used["cost_usd"] < again.reserved["cost_usd"]
    with tenant_transaction(world.id):
        lines = get_usage_lines(run)
    for name in map(Dimension, (*measured, "cost_usd")):
        assert lines[name].used == lost.used[name] + repeated.used[name], name
        assert lines[name].reserved == 0
    world.sound(run)
