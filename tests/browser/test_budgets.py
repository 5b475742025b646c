"""What a person sees of a run's budget: the switch at 80 % of its cost, its end at 100 % with what it has,
and more given from the inbox (R-BUDGET-5, R-BUDGET-6, R-BUDGET-7)."""

from __future__ import annotations

import re
from decimal import Decimal
from uuid import UUID

from playwright.sync_api import expect
from pytest_django import Settings

from budgets.actions import change_ceilings
from budgets.core.ceilings import Ceilings
from orchestrator import bundled_content
from orchestrator.publishing.actions.versions import publish_boundary, publish_workflow
from tenancy.db.tenant_context import tenant_transaction
from tests.browser.conftest import PageAs
from tests.browser.harness import NARROW, WIDE, no_sideways, photograph
from tests.doors.pages.people import world as world
from tests.factories.world import World
from tests.proves import proves

SUM = "How much is (12 + 30) * 2?"
COUNTED = (
    "steps", "model_turns", "tool_calls", "external_calls", "input_tokens", "output_tokens", "total_tokens",
    "wall_clock_seconds",
)  # fmt: skip


def published(world: World) -> None:
    """A boundary that runs out of nothing but money, and one that asks a person for more."""
    plain = bundled_content.get_bundled_boundary("tool-loop-default")
    wide = plain.evolve(slug="wide", budget=dict.fromkeys(COUNTED, Decimal(10_000_000)), identical_calls=500)
    loop = bundled_content.get_bundled_workflow("tool-loop").evolve(
        slug="counting", boundary="wide", scenario="count", tools=("calculator.*",), budget={}
    )
    with tenant_transaction(world.id):
        publish_boundary(world.id, wide, by=None)
        publish_boundary(world.id, plain.evolve(slug="asking", on_exhaustion="request"), by=None)
        publish_workflow(world.id, loop, by=None)


def out_of_money(world: World, settings: Settings) -> UUID:
    """A run that counts until its money is spent."""
    settings.INTERLOCK_SLICE_SECONDS = 600
    published(world)
    run = world.submit("counting", "Count to 200", budget={"cost_usd": "0.08"})
    assert world.drive(run).terminal_code == "BUDGET_EXHAUSTED"
    return run


@proves("R-BUDGET-5", part="the switch and the end, on the page")
@proves("R-BUDGET-18", part="shown with what stopped it")
def test_a_run_goes_cheaper_at_80_percent_and_ends_at_100_with_what_it_has(
    page_as: PageAs, world: World, settings: Settings
) -> None:
    run = out_of_money(world, settings)
    page = page_as("operator")
    page.goto(f"/runs/{run}")
    main = page.locator("main")
    expect(main).to_contain_text("It has too little money left for its next step.")
    expect(page.locator("#run-dials")).to_contain_text(
        "80 % of the cost is spent. The limit of $0.08 was set by the task, as the operator submitted it."
    )
    gate = page.locator('#run-breakers [data-breaker="budget_gate"]')
    figures = r"the run's limit of cost is \$0\.08: the next step needed \$0\.\d+, and \$0\.\d+ was left"
    expect(gate).to_contain_text(re.compile(figures))
    expect(gate).to_contain_text(
        "That step was not started. Limit set by the task, as the operator submitted it."
    )
    expect(page.locator("#result")).to_contain_text("actions were finished and committed")
    photograph(page, "light", WIDE)
    page.get_by_role("link", name="Money").click()
    switch = page.locator("#timeline-found > li", has_text="80 % of the cost")
    expect(switch).to_contain_text("what is left goes to the cheaper model")
    expect(switch).to_contain_text("scripted-cheaper")
    page.goto(f"/runs/{run}?tab=messages")
    page.locator(".voice-who", has_text="scripted-cheaper").last.get_by_role("link").click()
    page.locator("summary", has_text="Request").first.click()
    expect(main).to_contain_text("80 % of this run's cost is spent")


@proves("R-BUDGET-10", part="a run that a ceiling stopped, in a browser")
def test_a_run_that_the_tenants_ceiling_stopped_names_it_on_its_page(page_as: PageAs, world: World) -> None:
    run = world.submit("tool-loop", SUM)
    admin = world.people.admin
    change_ceilings(world.id, Ceilings(daily_usd=Decimal("0.0005")), by=admin.id, reason="a test")
    assert world.drive(run).terminal_code == "BUDGET_EXHAUSTED"
    page = page_as("operator", width=NARROW)
    page.goto(f"/runs/{run}")
    stopped = (
        r"he tenant's ceiling for a day is \$0\.0005: "
        r"the next step needed \$0\.\d+ of cost, and \$0\.0005 was left\."
    )
    gate = page.locator('#run-breakers [data-breaker="budget_gate"]')
    setter = f"{admin.principal.label} on "
    expect(gate).to_contain_text(re.compile(stopped))
    expect(gate).to_contain_text(f"That step was not started. Limit set by {setter}")
    expect(gate).to_contain_text("It opens when its window turns, or when an administrator raises it.")
    because = page.locator(".standing-because")
    expect(because).to_contain_text(re.compile(stopped))
    expect(because).to_contain_text(f"That step was not started. It was set by {setter}")
    photograph(page, "light", NARROW)
    no_sideways(page)


@proves("R-BUDGET-7", part="given in the inbox, finished, in a browser")
@proves("R-BUDGET-6", part="frozen, in a browser")
def test_a_frozen_run_is_given_more_in_the_inbox_and_finishes(page_as: PageAs, world: World) -> None:
    published(world)
    run = world.submit("tool-loop", SUM, boundary="asking", budget={"model_turns": 1})
    assert world.drive(run).status == "awaiting_gate"
    (request,) = world.open_requests(run)
    page = page_as("reviewer", width=NARROW)
    page.goto(f"/runs/{run}")
    gate = page.locator('#run-breakers [data-breaker="budget_gate"]')
    expect(gate).to_contain_text(
        "The run's limit of model turns is 1: what is left to do needs 1 at least, and 0 was left. "
        "The next step was not started: the run could not have finished. "
        "Limit set by the task, as the operator submitted it.",
        ignore_case=True,
    )
    page.goto("/approvals")
    page.locator(f'a[href*="{request.id}"]').first.click()
    main = page.locator("main")
    expect(main).to_contain_text(
        "The run has used 1 of its 1 model turns (calls); what comes next needs 1, and 0 is left."
    )
    photograph(page, "light", NARROW)
    no_sideways(page)
    page.get_by_label("More model turns").fill("5")
    page.locator("[data-arm]:not([data-disarmed])", has_text="Give more").click()
    expect(main).to_contain_text("Budget extended; the run goes on.")
    assert world.drive(run).terminal_code == "SUCCESS"
    page.goto(f"/runs/{run}")
    expect(page.locator("#result")).to_contain_text("84")
    expect(main).to_contain_text("of 6")
    expect(main).to_contain_text("Budget extended")
