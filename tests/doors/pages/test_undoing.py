"""Taking a yes back on pages without script, and the page where it is allowed."""

from typing import Any

import psycopg

from approvals.actions import withdraw_open
from approvals.actions.undo import take_effect
from approvals.models import Request
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tests.doors.pages.browsers import browser, words
from tests.doors.pages.forms import form_with
from tests.doors.pages.people import text
from tests.doors.pages.test_handling import press
from tests.doors.pages.test_inbox import listed
from tests.factories.approvals import Desk
from tests.factories.tenancy import Somebody
from tests.factories.undoing import kept_of, let_undo, pass_time
from tests.proves import proves

LOW: dict[str, Any] = {"risk": "local_write", "has_amount": False}


def approved(desk: Desk, who: Somebody) -> Request:
    """A request with somebody's yes, said on its page."""
    let_undo(desk.id, desk.house.people.admin)
    request = desk.ask(**LOW)
    assert press(who, request, "approve").status_code == 302
    return request


@proves("R-UI-4", part="a yes is taken back without script")
def test_a_yes_is_taken_back_where_it_was_said(desk: Desk) -> None:
    people = desk.house.people
    request = approved(desk, people.approver)
    page = browser(people.approver).get(f"/approvals/{request.id}")
    assert "Approved by you, takes effect" in words(page)
    answer = press(people.approver, request, "undo")
    assert (answer.status_code, answer["Location"]) == (302, f"/approvals/{request.id}")
    assert ([one.fate for one in kept_of(request)], desk.said(request)) == (["undone"], [])
    assert press(people.approver, request, "approve").status_code == 302


def test_everybody_else_sees_who_and_until_when(desk: Desk) -> None:
    people = desk.house.people
    request = approved(desk, people.approver)
    late = browser(people.second_approver)
    page = late.get(f"/approvals/{request.id}")
    assert "the reviewer approved. The approval can still be undone." in words(page)
    assert "Nothing else can be said until then." in words(page)
    assert b'value="approve"' not in page.content
    assert b'value="undo"' not in page.content
    assert b'value="undo"' in browser(people.admin).get(f"/approvals/{request.id}").content
    answer = late.post(f"/approvals/{request.id}", {"do": "undo"})
    assert (answer.status_code, "Nothing was undone." in words(answer)) == (403, True)
    answer = late.post(f"/approvals/{request.id}", {"decision": "reject", "reason": "No"})
    assert (answer.status_code, "the reviewer has already approved this." in words(answer)) == (409, True)


def test_the_list_offers_it_above_the_next_request(desk: Desk) -> None:
    people = desk.house.people
    request, following = approved(desk, people.approver), desk.ask(**LOW)
    client = browser(people.approver)
    page = client.get("/approvals", {"tab": "mine", "done": str(request.id)})
    assert listed(page) == [str(request.id), str(following.id)]
    answer = form_with(page, "undo").send(client, "undo")
    assert answer["Location"] == f"/approvals?tab=mine&done={request.id}&open={request.id}"
    assert "What you can take back" not in words(client.get("/approvals"))
    assert "the reviewer approved" not in words(browser(people.second_approver).get("/approvals"))


def test_the_key_is_the_open_card_s_own(desk: Desk) -> None:
    who = desk.house.people.approver
    first, second = approved(desk, who), desk.ask(**LOW)
    desk.say(second, who)
    client = browser(who)
    page = client.get("/approvals", {"tab": "open", "open": str(first.id)})
    text = page.content.decode()
    assert (text.count('data-key="z"'), text.count('value="undo"')) == (1, 3)
    assert text.index("offers") < text.index(f'id="card-{first.id}"') < text.index('data-key="z"')
    third = desk.ask(**LOW)
    text = client.get("/approvals", {"tab": "open", "open": str(third.id)}).content.decode()
    assert text.count('data-key="z"') == 1
    assert text.index('data-key="z"') < text.index(f'id="card-{third.id}"')


def test_only_a_yes_that_counted_says_so(desk: Desk, superuser: psycopg.Connection) -> None:
    who = desk.house.people.approver
    taken, ended = approved(desk, who), approved(desk, who)
    pass_time(superuser, taken)
    take_effect(desk.id, taken.run_id)
    with tenant_transaction(desk.id):
        withdraw_open(desk.id, ended.run_id, "run cancelled", database_now())
    for request, mark in ((taken, 'data-settled="taken"'), (ended, "data-settled data-words")):
        assert mark in text(browser(who).get(f"/approvals/{request.id}"))


def test_too_late_is_said_with_what_became_of_it(desk: Desk, superuser: psycopg.Connection) -> None:
    who = desk.house.people.approver
    request = approved(desk, who)
    client = browser(who)
    form = form_with(client.get(f"/approvals/{request.id}"), "undo")
    pass_time(superuser, request)
    assert b'value="undo"' not in client.get(f"/approvals/{request.id}").content
    take_effect(desk.id, request.run_id)
    answer = form.send(client, "undo")
    assert answer.status_code == 409
    assert "It can no longer be undone." in words(answer)
    assert "the reviewer approved" in words(answer)


def test_side_by_side_each_yes_says_when_it_takes_effect(desk: Desk) -> None:
    let_undo(desk.id, desk.house.people.admin)
    asked = [desk.ask(**LOW) for _ in range(2)]
    client = browser(desk.house.people.approver)
    page = client.get("/approvals/bulk", {"one": [str(one.id) for one in asked]})
    form = form_with(page, "approve")
    shown = [f"{one.id}:{one.packet_digest}" for one in asked]
    answer = client.post(form.action, {**form.fields, "one": shown, "decision": "approve"})
    assert words(answer).count("Approved, takes effect") == 2
    assert [kept_of(one)[0].fate for one in asked] == ["stands", "stands"]


@proves("R-UI-4", part="an administrator says for how long a yes can be taken back")
def test_an_admin_sets_it_with_a_reason_and_others_read_it(desk: Desk) -> None:
    people = desk.house.people
    admin, auditor = browser(people.admin), browser(people.auditor)
    assert "takes effect at once" in words(auditor.get("/policy"))
    form = form_with(admin.get("/policy/undo"), "set")
    assert form.send(admin, "set", seconds="5").status_code == 422
    assert form.send(admin, "set", seconds="5", reason="Fingers slip").status_code == 302
    assert form.send(admin, "set", seconds="3", reason="Late").status_code == 412
    shown = words(auditor.get("/policy/undo"))
    assert "takes effect after 5 seconds" in shown
    assert "Fingers slip" in shown
    assert "after 5 seconds" in words(auditor.get("/policy"))
    assert auditor.post("/policy/undo", {"seconds": "1", "reason": "x", "version": "1"}).status_code == 403
