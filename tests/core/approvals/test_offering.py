"""What one request can be answered with: its kind says, and its packet."""

from typing import Any

import pytest

from approvals.core.allowed_decisions import LONGEST_WORDS, list_allowed_decisions, unfit_words, why_not_back
from approvals.core.lifecycle import FITTING, DecisionKind
from approvals.core.packet import Proposal
from tests.factories.approvals import make_packet
from tests.proves import proves

BACK = DecisionKind.REVISE


@proves("R-APPR-3", part="revise: only where the packet offers it")
@pytest.mark.parametrize(
    ("proposal", "may"),
    [
        (None, False),
        (Proposal(number=1, most=3, returnable=True), True),
        (Proposal(number=3, most=3, returnable=False), False),
    ],
)
def test_a_call_is_sent_back_only_where_its_packet_says_so(proposal: Proposal | None, may: bool) -> None:
    packet = make_packet(proposal=proposal)
    assert (BACK in list_allowed_decisions(packet)) is may
    assert {*list_allowed_decisions(packet), BACK} == set(FITTING["action"])


@pytest.mark.parametrize("kind", [kind for kind in FITTING if kind != "action"])
def test_nothing_else_is_sent_back(kind: Any) -> None:
    assert BACK not in list_allowed_decisions(
        make_packet(kind=kind, proposal=Proposal(number=1, most=3, returnable=True))
    )


def test_why_it_cannot_be_says_which_of_the_two_it_is() -> None:
    last = make_packet(proposal=Proposal(number=3, most=3, returnable=False))
    assert "the last of 3 proposals" in why_not_back(last)
    assert "nobody in its run" in why_not_back(make_packet())


@pytest.mark.parametrize(
    ("words", "fit"),
    [
        ("Why?", True), ("?", True), ("x" * LONGEST_WORDS, True), ("", False), (" \n\t", False),
        ("\u200b\u2063", False), ("x" * (LONGEST_WORDS + 1), False),
    ],
)  # fmt: skip
def test_words_are_words_and_not_too_many(words: str, fit: bool) -> None:
    assert (unfit_words(words) == "") is fit
