"""What a run that was stopped by its budget shows, on its page and to programs (R-BUDGET-18)."""

from orchestrator.runs.actions.run_signals import cancel
from tenancy.core.roles import Role
from tests.doors.api.program import program
from tests.doors.pages.people import at, text
from tests.doors.pages.people import world as world
from tests.doubles.company import Company
from tests.factories.world import World, company_at
from tests.proves import proves


@proves("R-BUDGET-18", part="page and API")
def test_a_stopped_run_shows_how_far_it_came_and_what_nobody_checked(world: World, company: Company) -> None:
    with company_at(company.url):
        run = world.submit("support-refund", "Refund the order", inputs={"order_id": "A-1001"})
        assert world.drive(run).status == "awaiting_gate"
        cancel(world.id, run, by=world.people.operator.id, reason="enough")
        assert world.drive(run).terminal_code == "USER_CANCEL"
    answer = program(world.id, Role.AUDITOR).get(f"/runs/{run}/result").json()
    assert answer["partial"] is True
    assert answer["finished"] == [
        "orders.lookup committed the fact order",
        "policy.evaluate committed the fact policy",
    ]
    assert set(answer["output"]) == {"order", "policy"}
    assert any(line.startswith("payments.refund") for line in answer["open"])
    page = text(at(world.people.operator).get(f"/runs/{run}"))
    assert "Partial: 2 actions were finished and committed" in page
    assert "Still open" in page
    assert "Not verified" in page
