"""`manage.py ledger verify`: whole ledgers pass, and each thing that was altered is named (R-BUDGET-3)."""

from io import StringIO
from typing import Any
from uuid import UUID

import orjson
import psycopg
import pytest
from django.core.management import CommandError, call_command

from orchestrator.core.tools.tool_update import asked_change
from orchestrator.tools.actions.tool_updates import change_tool
from tests.factories.dying import Killed, dies_at
from tests.factories.world import World
from tests.proves import proves

SUM = "How much is (12 + 30) * 2?"


def spent(world: World) -> UUID:
    """A run that cost something and ended."""
    change_tool(world.id, "calculator.evaluate", asked_change({"price_usd": "0.2"}), by=None, reason="")
    run = world.submit("tool-loop", SUM)
    assert world.drive(run).status == "completed"
    return run


def told(world: World, *more: str) -> tuple[bool, dict[str, Any]]:
    """Whether the command is content, and what it tells of the tenant."""
    out = StringIO()
    try:
        call_command("ledger", "verify", "--tenant", world.house.tenant.slug, "--json", *more, stdout=out)
    except CommandError:
        return False, orjson.loads(out.getvalue())
    return True, orjson.loads(out.getvalue())


def alter(superuser: psycopg.Connection, statement: str, *values: object) -> None:
    """Alter rows with every trigger switched off."""
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        assert superuser.execute(statement.encode(), values).rowcount


@proves("R-BUDGET-3", part="the check command")
def test_a_whole_ledger_passes_with_its_runs_counted(world: World) -> None:
    spent(world)
    content, said = told(world)
    assert content
    assert said == {
        "whole": True,
        "tenants": [{"tenant": world.house.tenant.slug, "runs": 1, "faults": []}],
    }


@proves("R-BUDGET-3", part="in flight")
def test_what_is_in_flight_is_no_fault_and_what_is_not_is_one(
    world: World, superuser: psycopg.Connection
) -> None:
    run = world.submit("tool-loop", SUM)

    world.worker.fault = dies_at("committed")
    with pytest.raises(Killed):
        world.drive(run)
    assert told(world)[0]
    statement = "UPDATE orchestrator_run SET status = 'paused' WHERE id = %s"
    alter(superuser, statement, run)
    assert told(world)[0]
    statement = "UPDATE orchestrator_run SET status = 'failed', finished_at = now() WHERE id = %s"
    alter(superuser, statement, run)
    content, said = told(world)
    assert not content
    assert "not in flight" in said["tenants"][0]["faults"][0]["sentence"]


WINDOW = "account_id = (SELECT id FROM budgets_account WHERE tenant_id = %s AND kind = 'tenant_day')"
ALTERATIONS = {
    "a run's balance": ("UPDATE budgets_line SET used = used + 1 WHERE account_id = %s", "run"),
    "what a run holds": ("UPDATE budgets_line SET reserved = 1 WHERE account_id = %s", "run"),
    "a run's limit": ('UPDATE budgets_line SET "limit" = 99 WHERE account_id = %s', "run"),
    "a line is gone": ("DELETE FROM budgets_line WHERE account_id = %s AND dimension = 'cost_usd'", "run"),
    "a day's balance": (f"UPDATE budgets_line SET used = used - 0.1 WHERE {WINDOW}", "tenant"),
    "what a day holds": (f"UPDATE budgets_line SET reserved = 5 WHERE {WINDOW}", "tenant"),
    "an amount": ("UPDATE budgets_entry SET amounts = replace(amounts, '2', '3') WHERE run_id = %s", "run"),
    "a cause": ("UPDATE budgets_entry SET cause = 'release' WHERE run_id = %s AND cause = 'settle'", "run"),
    "a settlement is gone": ("DELETE FROM budgets_entry WHERE run_id = %s AND cause = 'settle'", "run"),
    "a tranche": ("UPDATE budgets_tranche SET booked = booked + 1 WHERE run_account_id = %s", "run"),
    "a window's beginning": (
        f"UPDATE budgets_entry SET at = now() WHERE run_id IS NULL AND {WINDOW}",
        "tenant",
    ),
}


@proves("R-BUDGET-3", part="every alteration is named")
@pytest.mark.parametrize("name", ALTERATIONS)
def test_each_thing_that_was_altered_is_found(world: World, superuser: psycopg.Connection, name: str) -> None:
    run = spent(world)
    statement, whose = ALTERATIONS[name]
    alter(superuser, statement, run if whose == "run" else world.id)
    content, said = told(world)
    assert not content
    assert said["tenants"][0]["faults"]


def test_one_run_can_be_asked_for_and_a_stranger_is_named(world: World) -> None:
    run = spent(world)
    out = StringIO()
    call_command("ledger", "verify", "--run", str(run), stdout=out)
    assert "1 runs, 0 faults" in out.getvalue()
    for more in (["--run", str(UUID(int=1))], ["--tenant", "nobody-at-all"]):
        with pytest.raises(CommandError, match="there is no"):
            call_command("ledger", "verify", *more, stdout=out)
