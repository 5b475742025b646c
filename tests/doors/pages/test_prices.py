"""The page of prices: what is known, a new version, a correction looked at first (R-BUDGET-15)."""

from decimal import Decimal

from django.test import Client

from budgets.models import Price
from budgets.queries import get_usage_lines
from orchestrator.core.tools.tool_update import asked_change
from orchestrator.tools.actions.tool_updates import change_tool
from tenancy.db.tenant_context import tenant_transaction
from tests.doors.pages.browsers import words
from tests.doors.pages.forms import Form, forms_of
from tests.doors.pages.people import at
from tests.doors.pages.people import world as world
from tests.factories.world import World
from tests.proves import proves

PAGE = "/budgets/prices"


def form(admin: Client, button: str) -> Form:
    """The form with that button."""
    return next(one for one in forms_of(admin.get(PAGE)) if button in {value for _, value in one.buttons})


@proves("R-BUDGET-15", part="stated on the page")
def test_a_price_is_stated_on_the_page_and_its_versions_stay(admin: Client, world: World) -> None:
    typed = {
        "price-provider": "openai", "price-model": "house-model", "price-input_usd_per_mtok": "2.5",
        "price-output_usd_per_mtok": "10", "price-reason": "Our contract",
    }  # fmt: skip
    stating = form(admin, "state")
    stating.fields["price-kind"] = "contract"
    assert stating.send(admin, "state", **typed).status_code == 302
    page = words(admin.get(PAGE))
    assert "house-model" in page
    assert "stated as the contract tenant 1 $2.50 $10.00" in page
    assert "Our contract" in page
    with tenant_transaction(world.id):
        assert Price.objects.get().set_by == world.people.admin.principal.id
    refused = stating.send(admin, "state", **typed | {"price-input_usd_per_mtok": "dear", "price-reason": ""})
    assert refused.status_code == 422
    assert "Enter a number" in words(refused)


@proves("R-BUDGET-15", part="corrected on the page")
def test_a_correction_shows_what_it_changes_before_it_changes_it(admin: Client, world: World) -> None:
    run = world.submit("tool-loop", "How much is (12 + 30) * 2?")
    world.drive(run)
    assert "No call was charged at a price that is not in force" in words(admin.get(PAGE))
    change_tool(world.id, "calculator.evaluate", asked_change({"price_usd": "0.2"}), by=None, reason="")
    typed = {"correct-wrong": "calculator.evaluate@1", "correct-reason": "It is not free"}
    looked = form(admin, "look").send(admin, "look", **typed)
    assert "2 calls of 1 runs, $0.40 in all" in words(looked)
    (again,) = [one for one in forms_of(looked) if ("apply", "apply") in one.buttons]
    assert again.send(admin, "apply", **typed).status_code == 302
    assert "2 calls of 1 runs are corrected" in words(admin.get(PAGE))
    with tenant_transaction(world.id):
        cost = next(line.used for name, line in get_usage_lines(run).items() if name == "cost_usd")
    assert cost > Decimal("0.4")


def test_only_an_admin_sees_the_forms_and_may_use_them(world: World) -> None:
    auditor = at(world.people.auditor)
    assert "needs the role admin" in words(auditor.get(PAGE))
    assert auditor.post(PAGE, {"state": "state"}).status_code == 403
