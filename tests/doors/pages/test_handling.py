"""Claiming, giving, putting aside and remarking on pages and by program."""

from datetime import timedelta
from typing import Any

import pytest

from approvals.models import Handling, Request
from tenancy.context import tenant
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
    with tenant(desk.id):
        assert str(Handling.objects.get(request_id=request.id).to) == to


def test_who_may_not_decide_sees_no_button_and_is_refused(desk: Desk) -> None:
    request = desk.ask()
    client = browser(desk.house.people.auditor)
    page = client.get(f"/approvals/{request.id}").content.decode()
    for word in ("claim", "snooze", "assign", "comment"):
        assert f'value="{word}"' not in page
        answer = client.post(f"/approvals/{request.id}/handle", {"do": word, "text": "a"})
        assert answer.status_code == 403
