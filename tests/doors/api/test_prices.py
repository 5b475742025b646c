"""Prices for programs: what is known, a new version, the correction of a wrong one (R-BUDGET-15)."""

from decimal import Decimal
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from budgets.models import Price
from budgets.queries import get_usage_lines
from orchestrator.core.tools.tool_update import asked_change
from orchestrator.tools.actions.tool_updates import change_tool
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry
from tests.doors.api.program import program
from tests.factories.world import World
from tests.proves import proves

CALCULATOR = "calculator.evaluate"
STATED: dict[str, Any] = {
    "provider": "openai", "model": "house-model", "input_usd_per_mtok": "2.5", "output_usd_per_mtok": 10,
    "reason": "the contract",
}  # fmt: skip
WRONG: dict[str, Any] = {"tool": CALCULATOR, "version": f"{CALCULATOR}@1", "reason": "it is not free"}


def ran(world: World) -> UUID:
    """An ended run that called the calculator while it cost nothing; now it costs."""
    run = world.submit("tool-loop", "How much is (12 + 30) * 2?")
    assert world.drive(run).status == "completed"
    change_tool(world.id, CALCULATOR, asked_change({"price_usd": "0.2"}), by=None, reason="")
    return run


def cost(world: World, run: UUID) -> Decimal:
    """US$ used by the run."""
    with tenant_transaction(world.id):
        return next(line.used for name, line in get_usage_lines(run).items() if name == "cost_usd")


@proves("R-BUDGET-15", part="stated by a program")
def test_a_price_is_stated_as_a_version_with_a_reason_and_listed(world: World) -> None:
    admin = program(world.id, Role.ADMIN)
    answer = admin.post("/prices", STATED)
    assert (answer.status_code, answer.json()["version"]) == (201, "tenant 1")
    worst = admin.post("/prices", STATED | {"kind": "worst_case", "input_usd_per_mtok": "20"})
    assert worst.json()["version"] == "declared 2"
    said = program(world.id, Role.AUDITOR).get("/prices").json()
    (model,) = [one for one in said["models"] if one["model"] == "house-model"]
    assert (model["input_usd_per_mtok"], model["output_usd_per_mtok"], model["cache_read_usd_per_mtok"]) == (
        "20", "10", None,
    )  # fmt: skip
    assert [one["version"] for one in said["versions"]] == ["declared 2", "tenant 1"]
    assert said["unknown"] == "worst"
    assert {"tool": CALCULATOR, "version": f"{CALCULATOR}@1", "price_usd": "0"} in said["tools"]
    with tenant_transaction(world.id):
        assert AuditEntry.objects.filter(verb="declare_price", reason="the contract").count() == 2


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"input_usd_per_mtok": "-1"}, "/input_usd_per_mtok"),
        ({"output_usd_per_mtok": 0.5}, "/output_usd_per_mtok"),
        ({"provider": "Open AI"}, "/provider"),
        ({"reason": ""}, "/reason"),
        ({"price": "1"}, "/price"),
    ],
)
def test_a_wrong_price_is_named_and_nothing_is_stated(
    world: World, wrong: dict[str, Any], pointer: str
) -> None:
    answer = program(world.id, Role.ADMIN).post("/prices", STATED | wrong)
    assert answer.status_code == 400
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    with tenant_transaction(world.id):
        assert not Price.objects.exists()


@proves("R-BUDGET-15", part="corrected by a program")
def test_a_correction_is_looked_at_and_then_made_once(world: World) -> None:
    run = ran(world)
    before, admin = cost(world, run), program(world.id, Role.ADMIN)
    looked = admin.post("/prices/corrections", WRONG | {"preview": True}).json()
    assert (looked["applied"], looked["calls"], looked["delta_usd"]) == (False, 2, "0.4")
    assert cost(world, run) == before
    made = admin.post("/prices/corrections", WRONG, once="one").json()
    assert made["runs"] == [{"run": str(run), "calls": 2, "delta_usd": "0.4", "later_calls": False}]
    assert cost(world, run) == before + Decimal("0.4")
    admin.post("/prices/corrections", WRONG, once="one")
    again = admin.post("/prices/corrections", WRONG).json()
    assert (again["calls"], cost(world, run)) == (0, before + Decimal("0.4"))


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (WRONG | {"model": "m"}, 400),
        ({"version": "tenant 1", "reason": "x"}, 400),
        ({"provider": "openai", "model": "nobody-knows-it", "version": "tenant 1", "reason": "x"}, 422),
        (WRONG | {"tool": "no.such"}, 404),
        (WRONG | {"version": f"{CALCULATOR}@2"}, 400),
    ],
)
def test_a_correction_that_cannot_be_says_why(world: World, body: dict[str, Any], status: int) -> None:
    change_tool(world.id, CALCULATOR, asked_change({"price_usd": "0.2"}), by=None, reason="")
    answer = program(world.id, Role.ADMIN).post("/prices/corrections", body)
    assert answer.status_code == status
    assert answer["Content-Type"].startswith("application/problem+json")


@proves("R-BUDGET-15", part="corrected from the command line")
def test_the_command_looks_and_then_corrects_every_run(world: World) -> None:
    run, out = ran(world), StringIO()
    before = cost(world, run)
    asked = [
        "correct", "--tenant", world.house.tenant.slug, "--tool", CALCULATOR, "--price", f"{CALCULATOR}@1",
        "--reason", "it is not free",
    ]  # fmt: skip
    call_command("ledger", *asked, stdout=out)
    assert "2 calls of 1 runs would be corrected" in out.getvalue()
    assert cost(world, run) == before
    call_command("ledger", *asked, "--apply", stdout=out)
    assert cost(world, run) == before + Decimal("0.4")
    with pytest.raises(CommandError, match="in force"):
        call_command("ledger", *asked[:6], f"{CALCULATOR}@2", *asked[7:], stdout=out)
