"""A run through the tool loop with the scripted model."""
from tests.conftest import House
from tests.doubles.company import Company
from tests.factories.world import company_at, make_world


def test_smoke(house: House) -> None:
    world = make_world(house)
    run = world.submit("tool-loop", "How much is (12 + 30) * 2?")
    found = world.drive(run)
    print(found.status, found.terminal_code, found.reason, world.kinds(run))
    print(world.result(run))
    world.sound(run)


def test_refund(house: House, company: Company) -> None:
    world = make_world(house)
    with company_at(company.url):
        run = world.submit("support-refund", "Refund the order", inputs={"order_id": "A-1001"})
        found = world.approve_all(run)
    print(found.status, found.terminal_code, found.reason, world.kinds(run))
    print(world.result(run))
    print(company.effects())
    world.sound(run)
