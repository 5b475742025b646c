"""Enough people: distinct ones, who agree to the same."""

from hypothesis import given
from hypothesis import strategies as st

from approvals.core.lifecycle import DecisionKind
from approvals.core.policy import Decider, Rule
from approvals.core.quorum import Vote, agreement_refusal, count_agreeing_people, has_quorum
from tests.proves import proves

EDITS = st.sampled_from([None, b"{}", b'{"a":1}'])
VOTES = st.lists(
    st.builds(Vote, st.sampled_from("abc"), st.sampled_from([k.value for k in DecisionKind]), EDITS),
    max_size=8,
)


@proves("R-APPR-5", part="distinct people")
@given(VOTES, EDITS)
def test_a_person_counts_once_however_often_they_speak(votes: list[Vote], arguments: bytes | None) -> None:
    assert count_agreeing_people(votes, arguments) <= len({vote.owner for vote in votes})
    assert count_agreeing_people(votes * 2, arguments) == count_agreeing_people(votes, arguments)


@proves("R-APPR-3", part="agreement to an edit")
def test_an_approval_of_the_packet_is_none_of_an_edit() -> None:
    votes = [Vote("ann", "approve", None), Vote("bob", "edit", b"{}")]
    assert (count_agreeing_people(votes, None), count_agreeing_people(votes, b"{}")) == (1, 1)
    assert has_quorum([*votes, Vote("eve", "edit", b"{}")], b"{}", 2)


def test_a_rejection_agrees_to_nothing() -> None:
    assert count_agreeing_people([Vote("ann", "reject", None)], None) == 0


@given(VOTES, EDITS)
def test_nobody_is_never_enough(votes: list[Vote], arguments: bytes | None) -> None:
    assert not has_quorum([], arguments, 0)
    assert has_quorum(votes, arguments, 0) == has_quorum(votes, arguments, 1)


def decider(**sets: frozenset[str]) -> Decider:
    """Bob, related to these."""
    return Decider(principal="p-bob", owner="bob", scopes=("decide",), authorities=(), **sets)


@proves("R-APPR-5", part="related people are one in a quorum")
@given(VOTES, EDITS, st.frozensets(st.sampled_from("abc")))
def test_a_yes_beside_a_related_one_to_the_same_arguments_is_refused(
    votes: list[Vote], arguments: bytes | None, related: frozenset[str]
) -> None:
    beside = {v.owner for v in votes if v.kind in ("approve", "edit") and v.arguments == arguments}
    found = agreement_refusal(votes, arguments, decider(related=related))
    assert (found is not None) is bool(beside & related)
    assert found is None or found.rule is Rule.RELATED_AGREED


def test_a_key_whose_secret_was_shown_to_the_decider_counts_as_their_vote() -> None:
    votes = [Vote("ann", "approve", None, "k")]
    assert agreement_refusal(votes, None, decider()) is None
    assert agreement_refusal(votes, None, decider(keys=frozenset("k"))) is not None
    assert agreement_refusal(votes, None, decider(related_keys=frozenset("k"))) is not None
