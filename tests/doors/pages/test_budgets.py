"""The page of money: what is spent, the ceilings, the ledger (R-UI-7, R-BUDGET-9)."""

import csv
from decimal import Decimal
from io import StringIO
from uuid import UUID

import pytest
from django.test import Client

from budgets.models import TenantCeiling
from budgets.queries.tenant import day_entries, shown, windows_now
from orchestrator.actions.tools import change_tool
from orchestrator.core.tool_change import asked_change
from tenancy.clock import database_now
from tenancy.context import tenant
from tenancy.core.roles import Role
from tenancy.models import AuditEntry
from tests.doors.api.program import program
from tests.doors.pages.browsers import words
from tests.doors.pages.forms import Form, forms_of
from tests.doors.pages.people import at, text
from tests.doors.pages.people import world as world
from tests.factories.world import World
from tests.proves import proves


@pytest.fixture
def admin(world: World) -> Client:
    """The administrator's browser."""
    return at(world.people.admin)


def ceilings(admin: Client) -> Form:
    """The form."""
    return next(form for form in forms_of(admin.get("/budgets")) if "daily_usd" in form.fields)


def spend(world: World) -> None:
    """A run that costs something."""
    change_tool(world.id, "calculator.evaluate", asked_change({"price_usd": "0.2"}), by=None, reason="")
    world.drive(world.submit("tool-loop", "How much is (12 + 30) * 2?"))


@proves("R-UI-7", part="ceilings")
@proves("R-SEC-6", part="ceilings on the page")
def test_ceilings_are_set_with_a_reason_and_their_history_stays(admin: Client, world: World) -> None:
    form = ceilings(admin)
    assert (form.fields["per_run_usd"], form.fields["daily_usd"]) == ("5", "100")
    typed = {**form.fields, "daily_usd": "20.5", "monthly_usd": "", "reason": "A quiet month"}
    assert admin.post("/budgets", typed).status_code == 302
    page = words(admin.get("/budgets"))
    assert "A quiet month" in page
    assert "$20.50" in page
    assert "no ceiling" in page
    with tenant(world.id):
        assert AuditEntry.objects.get(verb="set_ceilings").principal == world.people.admin.id
        assert TenantCeiling.objects.get().daily_usd == Decimal("20.5")


@pytest.mark.parametrize(
    "typed",
    [{"daily_usd": "-1"}, {"daily_usd": "much"}, {"reason": ""}, {"daily_usd": "1e30"}, {"daily_usd": "NaN"}],
)
def test_a_wrong_ceiling_is_named_and_changes_nothing(
    admin: Client, world: World, typed: dict[str, str]
) -> None:
    answer = admin.post("/budgets", {**ceilings(admin).fields, "reason": "x", **typed})
    assert answer.status_code == 422
    assert "Nothing was changed yet." in text(answer)
    with tenant(world.id):
        assert not TenantCeiling.objects.exists()


def test_ceilings_that_somebody_set_meanwhile_are_412(admin: Client) -> None:
    form = ceilings(admin)
    for amount, status in (("10", 302), ("20", 412)):
        typed = {**form.fields, "daily_usd": amount, "reason": "x"}
        assert admin.post("/budgets", typed).status_code == status


@proves("R-UI-7", part="the meter, the ledger and the API say the same to the cent")
def test_page_ledger_and_api_agree_to_the_cent(admin: Client, world: World) -> None:
    spend(world)
    with tenant(world.id):
        day = windows_now(database_now())["tenant_day"]
        entries = list(shown(day_entries(day.account)))
    assert day.spent > 0
    assert sum(entry.spent for entry in entries) == day.spent
    assert sum(entry.held for entry in entries) == day.held
    said = program(world.id, Role.AUDITOR).get("/ceilings").json()["day"]
    assert (Decimal(said["spent_usd"]), Decimal(said["reserved_usd"])) == (day.spent, day.held)
    assert f'value="{day.spent}"' in text(admin.get("/budgets"))


@proves("R-UI-7", part="ledger with filters and CSV")
def test_the_ledger_is_filtered_and_downloaded(admin: Client, world: World) -> None:
    spend(world)
    page = words(admin.get("/budgets"))
    assert "tranche" in page
    assert "No entry matches" in words(admin.get("/budgets?cause=correction"))
    rows = list(csv.DictReader(StringIO(text(admin.get("/budgets/ledger.csv?cause=tranche")))))
    assert {row["cause"] for row in rows} == {"tranche"}
    everything = list(csv.DictReader(StringIO(text(admin.get("/budgets/ledger.csv")))))
    with tenant(world.id):
        day = windows_now(database_now())["tenant_day"]
    assert sum(Decimal(row["spent_usd"]) for row in everything) == day.spent


@pytest.mark.parametrize("query", ["day=x", "cause=<b>", "run=1", "before=1", f"day={UUID(int=0)}"])
def test_nonsense_in_the_address_is_left_out(admin: Client, query: str) -> None:
    assert admin.get(f"/budgets?{query}").status_code == 200
    assert admin.get(f"/budgets/ledger.csv?{query}").status_code == 200
