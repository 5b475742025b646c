"""Two runs that would write to the same order at once: one after the other (G10)."""

from threading import Thread
from time import sleep

from django.db import connection

from orchestrator.runs.models.resource_lock import ConflictClaim
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tests.doubles.company import Company
from tests.factories.hurry import in_no_hurry
from tests.factories.world import World, fresh_worker
from tests.proves import proves


@proves("G10", part="across runs, by the company's own log")
def test_the_second_run_waits_until_the_first_has_its_answer(world: World, company: Company) -> None:
    runs = []
    for _ in range(2):
        runs.append(world.submit("support-refund", "Refund", inputs={"order_id": "A-1001", "amount": "5.00"}))
        world.drive(runs[-1])
        (asked,) = world.open_requests(runs[-1])
        world.decide(asked, world.people.approver)
    company.faults("payments", "hang", times=1, on="writes")
    with in_no_hurry("payments.refund"):
        first = Thread(target=_driven, args=(world, runs[0]))
        first.start()
        try:
            company.wait_until_held("payments")
            world.drive(runs[1], fresh_worker())
            assert len([asked for asked in company.requests("payments") if asked["method"] == "POST"]) == 1
            (said,) = world.said(runs[1], "conflict_waited")
            assert said["key"] == "order:A-1001"
        finally:
            company.faults("payments", "none")
            first.join()
    while not world.open_requests(runs[1]):
        world.drive(runs[1])
        sleep(0.05)
    assert len(company.effects("payments")) == 2
    with tenant_transaction(world.id):
        assert not ConflictClaim.objects.filter(until__gt=database_now()).exists()
    for run in runs:
        world.sound(run)


def _driven(world: World, run: object) -> None:
    try:
        fresh_worker().advance(run)  # type: ignore[arg-type]
    finally:
        connection.close()
