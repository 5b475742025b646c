"""Sending a call back on pages without script, and what the next proposal shows (R-APPR-3)."""

import orjson

from approvals.core.packet import Proposal
from tests.doors.pages.browsers import browser, words
from tests.doors.pages.forms import forms_of
from tests.doors.pages.test_deciding import KEY, card, decide
from tests.factories.approvals import ASKED, Desk
from tests.proves import proves


@proves("R-UI-4", part="ask the agent without script")
def test_a_call_is_sent_back_with_words_and_not_without(desk: Desk) -> None:
    offered = Proposal(number=1, most=3, returnable=True)
    request, fixed = desk.ask(proposal=offered), desk.ask(call="c2")
    empty = decide(desk.house.people.approver, request, "revise", reason=" ")
    assert (empty.status_code, desk.said(request)) == (422, [])
    assert "Needed: what you ask or want changed" in words(empty)
    assert decide(desk.house.people.approver, request, "revise", reason="Why?\r\nReally.").status_code == 302
    (said,) = desk.said(request)
    assert (said.kind, said.reason) == ("revise", "Why?\nReally.")
    page = words(browser(desk.house.people.auditor).get(f"/approvals/{request.id}"))
    assert "the reviewer asked for changes" in page
    assert "Really." in page
    _, other = card(desk.house.people.approver, fixed)
    assert [one for one in forms_of(other) if ("decision", "revise") in one.buttons] == []


@proves("R-UI-4", part="a proposal after one that was sent back")
def test_the_next_proposal_says_what_was_said_and_answered_and_changed(desk: Desk) -> None:
    first = desk.ask(proposal=Proposal(number=1, most=3, returnable=True))
    told = Proposal(
        number=3,
        most=3,
        returnable=False,
        previous=str(first.id),
        words=("<b>Why</b>?", f"Not {KEY}"),
        answer=f"<i>So</i>. {KEY}",
    )
    before = {**ASKED, "amount": "950.00"}
    request = desk.ask(call="c2", proposal=told, previous_arguments=orjson.dumps(before).decode())
    _, page = card(desk.house.people.approver, request)
    text = page.content.decode()
    assert "&lt;b&gt;Why&lt;/b&gt;?" in text
    assert "&lt;i&gt;So&lt;/i&gt;." in text
    assert f'href="/approvals/{first.id}"' in text
    assert text.index("<del>") < text.index("950.00") < text.index("<ins>")
    assert KEY not in text
    assert 'value="revise"' not in text
