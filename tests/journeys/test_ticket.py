"""A complaint: one ticket behind a gate, one item that people look at, judged by the company's own log."""

from uuid import UUID

from orchestrator.reviews.actions.review_queue import answer_review
from orchestrator.reviews.queries.reviews import open_items
from tenancy.db.tenant_context import tenant_transaction
from tests.doubles.company import Company
from tests.factories.world import World
from tests.proves import proves

TASK = {"order_id": "A-1001", "complaint": "The lamp arrived with a broken shade.", "severity": "high"}


def submitted(world: World) -> UUID:
    return world.submit("support-ticket", "Open a ticket for the complaint", inputs=TASK)


@proves("R-TOOL-19", part="ticket example")
def test_a_complaint_becomes_one_ticket_and_one_item_for_people(world: World, company: Company) -> None:
    run = submitted(world)
    found = world.approve_all(run)
    assert found.terminal_code == "SUCCESS", found.reason
    (opened,) = company.effects()
    assert (opened["service"], opened["action"], opened["reference"]) == ("tickets", "open", "A-1001")
    answer = world.result(run)["output"]
    with tenant_transaction(world.id):
        (item,) = open_items(9)
    assert (str(item.row.id), item.row.reason) == (answer["review_id"], TASK["complaint"])
    assert [one.fact for one in item.evidence] == ["order", "ticket"]
    approver = world.people.approver.principal.id
    answer_review(world.id, item.row.id, by=approver, finding="confirmed", note="It is broken.")
    world.sound(run)


@proves("R-TOOL-19", part="ticket example, refused")
def test_a_ticket_that_nobody_allows_is_not_opened(world: World, company: Company) -> None:
    run = submitted(world)
    world.drive(run)
    (asked,) = world.open_requests(run)
    world.decide(asked, world.people.approver, "reject", reason="Not ours.")
    assert world.drive(run).terminal_code == "CONFIRM_REQUIRED"
    assert company.effects() == []


@proves("R-TOOL-19", part="ticket example, sent again")
def test_a_ticket_that_was_opened_before_the_answer_was_lost_is_opened_once(
    world: World, company: Company
) -> None:
    run = submitted(world)
    world.drive(run)
    (asked,) = world.open_requests(run)
    world.decide(asked, world.people.approver)
    company.faults("tickets", "commit_then_fail", times=1, on="writes")
    world.approve_all(run)
    assert [one["action"] for one in company.effects()] == ["open"]
