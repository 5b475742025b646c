"""A live run shows all the phases of a run, by number and by name (R-LOOP-4)."""

from uuid import UUID

from pytest_django import Settings

from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doubles.company import Company
from tests.factories.foreign import Obedient, called, foreign, to_the_end
from tests.factories.world import World, company_at, make_world
from tests.proves import proves
from traces.core.events.phases import Phase
from traces.models import Event, Record

NEVER_NEEDED = [Phase.PLAN_SELECTION, Phase.REFLECTION_TRIGGER, Phase.MEMORY_WRITE]


def shown(world: World, run: UUID) -> set[int]:
    """The phases that the run's events and records carry."""
    with tenant_transaction(world.id):
        events = Event.objects.filter(run_id=run).values_list("phase", flat=True)
        records = Record.objects.filter(run_id=run).values_list("phase", flat=True)
        return {*events, *records}


def skipped(world: World, run: UUID) -> list[int]:
    """The phases that were passed over; each says why."""
    assert all(one["reason"] for one in world.said(run, "phase_skipped"))
    with tenant_transaction(world.id):
        found = Event.objects.filter(run_id=run, kind="phase_skipped").values_list("phase", flat=True)
        return sorted(set(found))


@proves("R-LOOP-4", part="a refund shows all eighteen")
def test_a_refund_shows_every_phase(house: House, company: Company) -> None:
    with company_at(company.url):
        world = make_world(house)
        run = world.submit("support-refund", "Refund the order", inputs={"order_id": "A-1001"})
        assert world.approve_all(run).terminal_code == "SUCCESS"
    assert shown(world, run) == {*Phase}
    assert skipped(world, run) == NEVER_NEEDED


@proves("R-LOOP-4", part="a tool loop with a gate shows all eighteen")
def test_a_tool_loop_that_asks_a_person_shows_every_phase(
    house: House, company: Company, settings: Settings
) -> None:
    asked = called("payments.refund", order_id="A-1001", amount="10.00", currency="USD", reason="late")
    with company_at(company.url), foreign(settings, Obedient(asked)):
        world = make_world(house)
        run = world.submit("tool-loop", "Refund 10.00 of order A-1001.")
        assert to_the_end(world, run).terminal_code == "SUCCESS"
    assert shown(world, run) == {*Phase}
    assert skipped(world, run) == NEVER_NEEDED
