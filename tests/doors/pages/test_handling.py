"""Claiming, giving, putting aside and remarking on pages and by program."""

from datetime import timedelta
from typing import Any

import pytest

from approvals.models import Handling, Request
from tenancy.db.tenant_context import tenant_transaction
from tests.doors.pages.browsers import browser, words
from tests.doors.pages.forms import form_with
from tests.doors.pages.test_inbox import listed
from tests.factories.approvals import Desk
from tests.factories.tenancy import Somebody
from tests.proves import proves


def press(who: Somebody, request: Request, button: str, **typed: str) -> Any:
    """Open the request's page, fill the form that has the button, press it."""
    client = browser(who)
    return form_with(client.get(f"/approvals/{request.id}"), button).send(client, button, **typed)


@proves("R-APPR-9", part="claim on a page")
def test_a_claim_stands_at_the_card_and_in_the_list(desk: Desk) -> None:
    people, request = desk.house.people, desk.ask()
    client = browser(people.second_approver)
    late = form_with(client.get(f"/approvals/{request.id}"), "claim")
    assert press(people.approver, request, "claim").status_code == 302
    for who in (people.approver, people.second_approver, people.auditor):
        page = browser(who).get("/approvals", {"tab": "open", "open": str(request.id)})
        assert words(page).count("with the reviewer") == 2
    answer = late.send(client, "claim")
    assert answer.status_code == 409
    assert "The request was already claimed by the reviewer." in words(answer)
    assert press(people.approver, request, "release").status_code == 302


@proves("R-APPR-9", part="put aside on a page")
def test_what_is_put_aside_leaves_mine_alone_and_comes_back(desk: Desk) -> None:
    people = desk.house.people
    request = desk.ask(expires_in=timedelta(hours=3))
    assert press(people.approver, request, "snooze", until="60").status_code == 302

    def tab(name: str, who: Somebody) -> list[str]:
        return listed(browser(who).get("/approvals", {"tab": name}))

    assert (tab("mine", people.approver), tab("snoozed", people.approver)) == ([], [str(request.id)])
    assert (tab("mine", people.second_approver), tab("snoozed", people.second_approver)) == (
        [str(request.id)], [],
    )  # fmt: skip
    assert tab("open", people.approver) == [str(request.id)]
    assert press(people.approver, request, "wake").status_code == 302
    assert tab("mine", people.approver) == [str(request.id)]


@pytest.mark.parametrize("until", ["240", "morning", "nonsense", ""])
def test_beyond_its_time_nothing_is_put_aside(desk: Desk, until: str) -> None:
    request = desk.ask(expires_in=timedelta(minutes=30))
    answer = press(desk.house.people.approver, request, "snooze", until=until)
    assert answer.status_code == 422
    assert "Nothing was done." in words(answer)


@proves("R-APPR-9", part="comments on a page")
def test_a_remark_stands_there_for_all_and_is_never_run(desk: Desk) -> None:
    request = desk.ask()
    text = "<script>alert(1)</script> \u202e seen"
    assert press(desk.house.people.approver, request, "comment", text=text).status_code == 302
    page = browser(desk.house.people.auditor).get(f"/approvals/{request.id}").content.decode()
    assert "<script>alert" not in page
    assert "U+202E" in page
    empty = press(desk.house.people.approver, request, "comment", text=" ")
    assert empty.status_code == 422


def test_it_is_given_to_another_by_name(desk: Desk) -> None:
    people, request = desk.house.people, desk.ask()
    to = str(people.second_approver.principal.id)
    assert press(people.approver, request, "assign", to=to).status_code == 302
    with tenant_transaction(desk.id):
        assert str(Handling.objects.get(request_id=request.id).to) == to


def test_who_may_not_decide_sees_no_button_and_is_refused(desk: Desk) -> None:
    request = desk.ask()
    client = browser(desk.house.people.auditor)
    page = client.get(f"/approvals/{request.id}").content.decode()
    for word in ("claim", "snooze", "assign", "comment"):
        assert f'value="{word}"' not in page
        answer = client.post(f"/approvals/{request.id}", {"do": word, "text": "a"})
        assert answer.status_code == 403


@proves("R-UI-11", part="a refused wish comes back with what was typed")
def test_a_wish_that_is_refused_comes_back_at_the_card_with_what_was_chosen(desk: Desk) -> None:
    people, request = desk.house.people, desk.ask(expires_in=timedelta(minutes=30))
    run = f"/runs/{request.run_id}"
    client = browser(people.approver)
    form = form_with(client.get(f"/approvals/{request.id}", {"back": run}), "snooze")
    answer = form.send(client, "snooze", until="240")
    assert answer.status_code == 422
    again = form_with(answer, "snooze")
    assert (again.fields["until"], again.fields["back"]) == ("240", run)
    assert client.get(answer.request["PATH_INFO"]).status_code == 200
    long = "much " * 1_000
    refused = press(people.approver, request, "comment", text=long)
    assert refused.status_code == 422
    assert form_with(refused, "comment").fields["text"] == long
    for wish in ("claim", "comment"):
        form = form_with(client.get(f"/approvals/{request.id}", {"back": run}), wish)
        assert form.send(client, wish, text="seen")["Location"] == run


def test_nobody_is_chosen_beforehand_to_have_it(desk: Desk) -> None:
    people, request = desk.house.people, desk.ask()
    form = form_with(browser(people.approver).get(f"/approvals/{request.id}"), "assign")
    assert form.fields["to"] == ""
    answer = form.send(browser(people.approver), "assign")
    assert answer.status_code == 422
    assert "nobody of this tenant is named" in words(answer)


def test_a_card_that_asked_by_script_comes_back_in_its_place(desk: Desk) -> None:
    people, request = desk.house.people, desk.ask()
    script = {"HX-Request": "true"}
    first, second = browser(people.approver), browser(people.second_approver)
    form = form_with(second.get(f"/approvals/{request.id}"), "claim")
    done = first.post(form.action, {**form.fields, "do": "claim"}, headers=script)
    assert (done.status_code, done["HX-Redirect"]) == (200, f"/approvals/{request.id}")
    late = second.post(form.action, {**form.fields, "do": "claim"}, headers=script)
    assert (late.status_code, late["Interlock-Card"]) == (409, str(request.id))
    assert "already claimed by the reviewer" in words(late)
    assert "<html" not in late.content.decode()
