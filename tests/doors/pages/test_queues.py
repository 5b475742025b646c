"""The page of the queues (R-UI-9, R-SEC-11)."""

import pytest
from django.test import Client

from tenancy.actions.queues import add_queue
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Membership, Queue
from tests.doors.pages.people import at, text
from tests.doors.pages.people import world as world
from tests.factories.world import World
from tests.proves import proves

PAGE = "/tenant/queues"


@pytest.fixture
def admin(world: World) -> Client:
    """The administrator's browser."""
    return at(world.people.admin)


def row_of(world: World, name: str) -> Queue:
    """A queue."""
    with tenant_transaction(world.id):
        return Queue.objects.get(name=name)


@proves("R-UI-9", part="queues")
def test_a_queue_is_added_described_closed_and_opened_on_the_page(admin: Client, world: World) -> None:
    given = {"name": "claims", "description": "Claims of customers", "reason": "New team"}
    assert admin.post(PAGE, given).status_code == 302
    shown = text(admin.get(PAGE))
    assert "The queue claims is there" in shown
    assert "Claims of customers" in shown
    path = f"{PAGE}/{row_of(world, 'claims').id}"
    wished = {"wish": "describe", "description": "Ours", "reason": "Said better"}
    assert admin.post(path, wished).status_code == 302
    assert row_of(world, "claims").description == "Ours"
    assert admin.post(path, {"wish": "close", "reason": "Unused"}).status_code == 302
    assert row_of(world, "claims").closed_at is not None
    assert admin.post(path, {"wish": "reopen", "reason": "Needed"}).status_code == 302
    assert row_of(world, "claims").closed_at is None


@pytest.mark.parametrize(
    "given", [{"name": "Claims"}, {"name": "finance"}, {"description": "x" * 301}, {"reason": ""}]
)
def test_a_queue_that_is_none_is_refused_on_the_page(
    admin: Client, world: World, given: dict[str, str]
) -> None:
    answer = admin.post(PAGE, {"name": "claims", "description": "", "reason": "New", **given})
    assert answer.status_code == 422
    with tenant_transaction(world.id):
        assert not Queue.objects.filter(name="claims").exists()


@proves("R-SEC-11", part="a queue that something names is not closed, on the page")
def test_a_queue_in_use_offers_no_closing_and_refuses_it(admin: Client, world: World) -> None:
    row = row_of(world, "budget")
    answer = admin.post(f"{PAGE}/{row.id}", {"wish": "close", "reason": "Unused"})
    assert answer.status_code == 409
    assert "runs themselves" in text(answer)
    assert row_of(world, "budget").closed_at is None


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"wish": "close", "reason": ""}, 422),
        ({"wish": "delete", "reason": "x"}, 404),
        ({"wish": "describe", "description": "x" * 301, "reason": "x"}, 422),
    ],
)
def test_what_is_no_change_of_a_queue_is_refused(
    admin: Client, world: World, given: dict[str, str], status: int
) -> None:
    add_queue(world.id, "claims", "", by=None)
    row = row_of(world, "claims")
    assert admin.post(f"{PAGE}/{row.id}", given).status_code == status
    assert row_of(world, "claims").closed_at is None


@proves("R-APPR-23", part="a queue that nobody clears is shown as such")
def test_a_queue_that_nobody_clears_is_shown_as_such(admin: Client, world: World) -> None:
    assert "Nobody" not in text(admin.get(PAGE))
    with tenant_transaction(world.id):
        Membership.objects.update(queues=["finance"])
    assert "Nobody" in text(admin.get(PAGE))


@proves("R-SEC-11", part="a member is not given an unknown queue on the page")
def test_a_member_with_an_unknown_queue_is_refused_on_the_page(admin: Client, world: World) -> None:
    given = {
        "email": f"new-{world.id.hex}@people.example", "name": "Newcomer", "role": "reviewer",
        "queues": "tresury",
    }  # fmt: skip
    answer = admin.post("/tenant/people/invite", given)
    assert (answer.status_code, "no open queue tresury" in text(answer)) == (422, True)
    with tenant_transaction(world.id):
        held = Membership.objects.filter(role="reviewer")[0]
    limits = admin.post(f"/tenant/members/{held.id}/limits", {"queues": "tresury", "reason": "So"})
    assert (limits.status_code, "no open queue tresury" in text(limits)) == (422, True)


def test_whoever_does_not_administer_looks_and_changes_nothing(world: World) -> None:
    auditor = at(world.people.auditor)
    assert "Add the queue" not in text(auditor.get(PAGE))
    assert auditor.post(PAGE, {"name": "claims", "reason": "x"}).status_code == 403
