"""A call that a person sends back to whoever proposed it: decided once, and granted to nobody (R-APPR-3)."""

from functools import partial

import pytest

from approvals.actions import ConsumedGrant
from approvals.core.errors import AlreadyDecided, DecisionInvalid, NotYours, PacketChanged
from approvals.core.packet import Proposal
from approvals.models import Request
from tests.factories.approvals import Desk, at_once
from tests.proves import proves

FIRST = Proposal(number=1, most=3, returnable=True)
LAST = Proposal(number=3, most=3, returnable=False)
WHY = "Why so much?"


def asked(desk: Desk, **more: object) -> Request:
    """A request that can be sent back."""
    return desk.ask(proposal=FIRST, **more)  # type: ignore[arg-type]


@proves("R-APPR-3", part="revise")
@proves("R-APPR-4", part="nothing is granted by what is sent back")
def test_what_is_sent_back_is_decided_and_grants_nothing(desk: Desk) -> None:
    request = asked(desk)
    decided = desk.say(request, desk.house.people.approver, "revise", reason=WHY)
    assert (decided.status, decided.outcome, decided.ended_because) == ("decided", "revise", "sent_back")
    assert decided.granted_action == ""
    assert not isinstance(desk.use(request), ConsumedGrant)
    (heard,) = desk.heard
    told = heard.signal_payload
    assert (heard.signal_kind, told["decision"], told["reason"]) == ("decided", "revise", WHY)
    assert heard.by == desk.house.people.approver.principal.id


@proves("R-APPR-3", part="revise: one suffices")
def test_one_person_s_question_sends_back_what_needs_two(desk: Desk) -> None:
    request = asked(desk, quorum=2)
    desk.say(request, desk.house.people.approver)
    assert desk.say(request, desk.house.people.second_approver, "revise", reason=WHY).outcome == "revise"
    with pytest.raises(AlreadyDecided):
        desk.say(request, desk.house.people.admin)


@proves("R-APPR-5", part="a yes and a question at once")
def test_of_a_yes_and_a_question_at_once_one_wins(desk: Desk) -> None:
    people, request = desk.house.people, asked(desk)
    outcomes = at_once(
        [
            partial(desk.say, request, people.approver),
            partial(desk.say, request, people.second_approver, "revise", reason=WHY),
        ]
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["AlreadyDecided", "Request"]
    (word,) = desk.said(request)
    settled = desk.again(request)
    assert settled.outcome == word.kind
    assert (settled.granted_action != "") is (word.kind == "approve")


@proves("R-APPR-5", part="nobody asks the agent on their own run")
def test_the_submitter_does_not_send_their_own_call_back(desk: Desk) -> None:
    request = asked(desk)
    for who in (desk.house.people.submitter, desk.house.people.auditor):
        with pytest.raises(NotYours):
            desk.say(request, who, "revise", reason=WHY)
    assert desk.said(request) == []


@proves("R-APPR-4", part="a question is about the packet that was shown")
def test_a_question_about_another_packet_is_refused(desk: Desk) -> None:
    request = asked(desk)
    with pytest.raises(PacketChanged):
        desk.say(request, desk.house.people.approver, "revise", reason=WHY, packet_digest="f" * 64)
    assert desk.again(request).status == "pending"


@pytest.mark.parametrize(
    ("proposal", "words", "pointer"),
    [
        (None, WHY, "/decision"),
        (LAST, WHY, "/decision"),
        (FIRST, "", "/reason"),
        (FIRST, " \u200b\n", "/reason"),
        (FIRST, "x" * 2_001, "/reason"),
        (FIRST, "a\0b", "/reason"),
    ],
)
def test_what_cannot_be_sent_back_or_says_nothing_stays_open(
    desk: Desk, proposal: Proposal | None, words: str, pointer: str
) -> None:
    request = desk.ask(proposal=proposal)
    with pytest.raises(DecisionInvalid) as refused:
        desk.say(request, desk.house.people.approver, "revise", reason=words)
    assert refused.value.data["pointer"] == pointer
    assert (desk.said(request), desk.again(request).status) == ([], "pending")
