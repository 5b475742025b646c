"""Several requests by one press: side by side, each a decision of its own, what did not count is said."""

import re
from typing import Any

import pytest

from approvals.actions.bulk import decide_together
from approvals.core.errors import DecisionInvalid, RequestNotFound
from approvals.core.lifecycle import DecisionKind
from approvals.models import Request
from approvals.queries.inbox import Filters, inbox_page, several_fit
from approvals.queries.people import decider_of
from approvals.views.fragments import inbox_fragments
from approvals.views.live_inbox import view_of
from tenancy.db.tenant_context import tenant_transaction
from tenancy.queries import standing_of
from tests.doors.pages.browsers import browser, words
from tests.doors.pages.forms import form_with
from tests.doors.pages.people import join_lines
from tests.factories.approvals import ASKED, Desk
from tests.proves import proves

WHERE = "/approvals/bulk"


def mails(desk: Desk, count: int = 3, **more: Any) -> list[Request]:
    """Alike requests of low risk; each has another order."""
    given: dict[str, Any] = {"risk": "network", "has_amount": False, **more}
    return [desk.ask(arguments={**ASKED, "order_id": f"A-{n}"}, **given) for n in range(count)]


def press(client: Any, page: Any, button: str, **typed: str) -> Any:
    """Press a button of the table's form; it names every request with its packet."""
    shown = re.findall(r'name="one" value="([^"]*)"', page.content.decode())
    return client.post(WHERE, {"one": shown, "decision": button, **typed})


@proves("R-APPR-9", part="bulk decision, shown side by side")
def test_alike_requests_are_approved_by_one_press_side_by_side(desk: Desk) -> None:
    asked = mails(desk)
    client = browser(desk.house.people.approver)
    page = client.get(WHERE, {"one": [str(one.id) for one in asked]})
    said = words(page)
    assert said.index("The same in all of them /amount") < said.index("Where they differ")
    assert [f"A-{n}" in said for n in range(3)] == [True, True, True]
    assert form_with(page, "approve").action == WHERE
    done = press(client, page, "approve")
    assert done.status_code == 200
    assert [desk.again(one).outcome for one in asked] == ["approve"] * 3
    assert [len(desk.said(one)) for one in asked] == [1, 1, 1]


@proves("R-APPR-9", part="what does not count in bulk is said, the rest counts")
def test_one_that_was_decided_meanwhile_leaves_the_others_as_they_are(desk: Desk) -> None:
    first, second = mails(desk, 2)
    client = browser(desk.house.people.approver)
    page = client.get(WHERE, {"one": [str(first.id), str(second.id)]})
    desk.say(first, desk.house.people.second_approver, "reject", reason="no")
    done = press(client, page, "approve")
    assert "Not counted: The request was already decided." in words(done)
    assert (desk.again(first).outcome, desk.again(second).outcome) == ("reject", "approve")


def test_together_they_are_rejected_with_one_reason(desk: Desk) -> None:
    asked = mails(desk, 2)
    client = browser(desk.house.people.approver)
    page = client.get(WHERE, {"tool": "payments.refund"})
    without = press(client, page, "reject", reason=" ")
    assert (without.status_code, [desk.said(one) for one in asked]) == (422, [[], []])
    assert press(client, page, "reject", reason="Not today.").status_code == 200
    assert [desk.said(one)[0].reason for one in asked] == ["Not today."] * 2


@proves("R-APPR-9", part="nothing above network or with money in bulk")
@pytest.mark.parametrize("more", [{"risk": "destructive"}, {"has_amount": True}, {"risk": "delegated"}])
def test_what_weighs_more_is_never_decided_together(desk: Desk, more: dict[str, Any]) -> None:
    asked = [*mails(desk, 1), *mails(desk, 1, **more)]
    client = browser(desk.house.people.approver)
    page = client.get(WHERE, {"one": [str(one.id) for one in asked]})
    assert "These cannot be decided together." in words(page)
    assert 'name="decision"' not in page.content.decode()
    shown = [f"{one.id}:{one.packet_digest}" for one in asked]
    assert client.post(WHERE, {"one": shown, "decision": "approve"}).status_code == 422
    assert [desk.said(one) for one in asked] == [[], []]


def test_a_packet_that_was_not_shown_is_not_decided(desk: Desk) -> None:
    (request,) = mails(desk, 1)
    client = browser(desk.house.people.approver)
    done = client.post(WHERE, {"one": f"{request.id}:{'0' * 64}", "decision": "approve"})
    assert "Not counted:" in words(done)
    assert desk.said(request) == []


def test_rights_hold_for_each(desk: Desk) -> None:
    asked = [*mails(desk, 1), *mails(desk, 1, submitter=desk.house.people.approver)]
    shown = [(one.id, one.packet_digest) for one in asked]
    principal = desk.house.people.approver.principal.id
    done = decide_together(desk.id, principal, shown, DecisionKind.APPROVE)
    assert [one.error is None for one in done] == [True, False]
    for word in (DecisionKind.EDIT, DecisionKind.ANSWER, DecisionKind.CANCEL):
        with pytest.raises(DecisionInvalid):
            decide_together(desk.id, principal, shown, word)
    stranger = desk.house.people.stranger.principal.id
    theirs = decide_together(desk.id, stranger, shown, DecisionKind.APPROVE)
    assert [one.error is None for one in theirs] == [False, False]


@pytest.mark.parametrize("one", ["nonsense", "00000000-0000-7000-8000-000000000000", ""])
def test_what_is_not_there_is_missing(desk: Desk, one: str) -> None:
    client = browser(desk.house.people.approver)
    assert client.post(WHERE, {"one": f"{one}:x", "decision": "approve"}).status_code == 404
    (request,) = mails(desk, 1)
    other = browser(desk.house.people.stranger)
    assert other.get(WHERE, {"one": str(request.id)}).status_code == 404
    with pytest.raises(RequestNotFound):
        decide_together(
            desk.house.people.other_tenant.id, desk.house.people.stranger.principal.id,
            [(request.id, request.packet_digest)], DecisionKind.APPROVE,
        )  # fmt: skip


def test_the_list_offers_picks_only_where_several_fit(desk: Desk) -> None:
    client = browser(desk.house.people.approver)
    asked = mails(desk, 2)
    desk.ask()
    page = client.get("/approvals").content.decode()
    assert page.count('class="pick"') == len(asked)
    others = browser(desk.house.people.auditor).get("/approvals", {"tab": "open"}).content.decode()
    assert 'class="pick"' not in others


@proves("R-APPR-9", part="what comes while the list is open can be picked")
@pytest.mark.parametrize("tab", ["mine", "open"])
def test_a_second_one_that_comes_can_be_picked_and_brings_the_button(desk: Desk, tab: str) -> None:
    mails(desk, 1)
    who, hidden = desk.house.people.approver, re.compile('<form id="together"[^>]* hidden>')
    page = browser(who).get("/approvals", {"tab": tab}).content.decode()
    assert hidden.search(page)
    start = re.findall(r'data-seq="([^"]+)"', page)[0]
    (second,) = mails(desk, 1)
    view = view_of(f"tab={tab}", who.principal.id)
    came = join_lines(inbox_fragments(desk.id, start, ("read",), view).html)
    assert f'name="one" value="{second.id}" data-pick' in came
    assert 'id="together"' in came
    assert not hidden.search(came)
    desk.say(second, desk.house.people.second_approver, "reject", reason="no")
    assert hidden.search(inbox_fragments(desk.id, start, ("read",), view).html)


def test_the_list_counts_as_fitting_what_its_rows_say(desk: Desk) -> None:
    (said,) = mails(desk, 1, quorum=2)
    desk.say(said, desk.house.people.approver)
    mails(desk, 1, risk="destructive")
    mails(desk, 1, has_amount=True)
    mails(desk, 1, submitter=desk.house.people.approver)
    mails(desk, 1)
    for several in (False, True):
        for person in ("approver", "second_approver", "auditor"):
            standing = standing_of(desk.id, getattr(desk.house.people, person).id)
            assert standing is not None
            filters = Filters(risk="network")
            with tenant_transaction(desk.id):
                decider = decider_of(standing)
                rows = inbox_page("open", decider, filters).rows
                fit = several_fit("open", decider, filters)
            assert fit == (sum(row.together for row in rows) > 1)
            assert fit == (person == "second_approver" or (several and person == "approver"))
        mails(desk, 1)


@proves("R-APPR-9", part="none picked over several sorts")
def test_with_none_picked_the_first_and_those_like_it_stand_side_by_side(desk: Desk) -> None:
    worse, lower = mails(desk, 2), mails(desk, 2, risk="local_write")
    page = browser(desk.house.people.approver).get(WHERE)
    shown = page.content.decode()
    assert [f'id="beside-{one.id}"' in shown for one in (*worse, *lower)] == [True, True, False, False]
    assert "cannot be decided together" not in shown
