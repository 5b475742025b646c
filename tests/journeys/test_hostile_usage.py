"""Whatever a provider says it took, a run is bounded by what was reserved for it; and what is lost is counted
once (M11, B3)."""

from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest
from pytest_django import Settings

from budgets.core.posting import Cause
from budgets.ledger_verification import verify_ledger
from budgets.queries import get_usage_lines, list_run_entries
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doubles.openai_server import ABSENT, OpenAIServer, said
from tests.doubles.openai_server import usage as reported
from tests.factories.dying import Killed, dies_at
from tests.factories.foreign import foreign, onwards
from tests.factories.world import World, fresh_worker, make_world
from tests.proves import proves
from tests.shell.orchestrator.test_ring import let_the_lease_die

SUM = "How much is (12 + 30) * 2?"
SAID: dict[str, Any] = {
    "boundless": reported(10**18, 10**18),
    "beyond 64 bits": reported(10**30, 1),
    "negative": reported(-(10**18), -1),
    "none": ABSENT,
    "nothing": reported(0, 0),
    "words": reported("many", "few"),
}


def charged(world: World, run: UUID) -> dict[str, Decimal]:
    """What the run's lines say was used; each is what its entries add up to."""
    with tenant_transaction(world.id):
        assert verify_ledger(run) == []
        entries = list_run_entries(run)
        assert all(amount >= 0 for entry in entries for amount in entry.used.values())
        return {str(name): line.used for name, line in get_usage_lines(run).items()}


@proves("M11", part="through a run")
@proves("R-BUDGET-2", part="no reported usage passes the reservation")
@pytest.mark.parametrize("name", SAID)
def test_no_reported_usage_charges_more_than_was_reserved(
    house: House, settings: Settings, name: str
) -> None:
    server = OpenAIServer(said("It is done.", usage=SAID[name]))
    with foreign(settings, server):
        settings.INTERLOCK_UNKNOWN_PRICE = "worst"
        world = make_world(house)
        run = world.submit("tool-loop", "Say that it is done.")
        found = onwards(world, run)
    assert found.terminal_code == "SUCCESS", found.reason
    used = charged(world, run)
    with tenant_transaction(world.id):
        (reserved,) = [entry.reserved for entry in list_run_entries(run) if entry.cause == Cause.RESERVE]
    assert used["model_turns"] == 1
    for dimension in ("input_tokens", "output_tokens", "cost_usd"):
        assert 0 <= used[dimension] <= reserved[dimension]
    world.sound(run)


@proves("B3", part="the lost call and its repetition")
@proves("R-BUDGET-3", part="a lost reply")
def test_a_lost_reply_is_charged_at_its_reservation_and_the_repetition_at_its_cost(
    house: House, superuser: psycopg.Connection
) -> None:
    world = make_world(house)
    run = world.submit("tool-loop", SUM)
    dying = fresh_worker()
    dying.fault = dies_at("performed")
    with pytest.raises(Killed):
        dying.advance(run)
    let_the_lease_die(superuser, run)
    assert world.drive(run).terminal_code == "SUCCESS"
    charged(world, run)
    with tenant_transaction(world.id):
        entries = list_run_entries(run)
    held = {str(entry.effect_id): entry.reserved for entry in entries if entry.cause == Cause.RESERVE}
    ends = {str(entry.effect_id): entry for entry in entries if entry.cause == Cause.SETTLE}
    calls = [effect for effect, amounts in held.items() if "model_turns" in amounts]
    lost, repeated = calls[:2]
    assert [ends[effect].unknown for effect in calls] == [True] + [False] * (len(calls) - 1)
    for dimension in ("input_tokens", "output_tokens", "cost_usd"):
        assert ends[lost].used[dimension] == held[lost][dimension]
        assert ends[repeated].used[dimension] < held[repeated][dimension]
    assert sum(entry.cause == Cause.SETTLE for entry in entries if entry.effect_id == lost) == 1
    world.sound(run)
