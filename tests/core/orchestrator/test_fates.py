"""What becomes of a call by what came back: the whole table, and what holds for all of it."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.domain.call_outcomes import (
    REFUSALS,
    Answer,
    CallFacts,
    Fate,
    LookUpMiss,
    answer_of,
    fate_of,
)
from tests.proves import proves

BOTH = (False, True)
NONE, ODD, BROKE, ERROR, REFUSED = Answer
FAILED, OPEN, REPEAT, LOOK_UP, IN_DOUBT = Fate
SILENT, SAYS_SO = {NONE, BROKE}, {BROKE, ERROR}
EVERY = [
    CallFacts(*one)
    for one in product(BOTH, BOTH, Answer, BOTH, BOTH, BOTH, BOTH, BOTH, BOTH, LookUpMiss)
]  # fmt: skip

# A change that was sent, of a tool that declares neither keys nor a look-up; with a look-up; with keys that
# may be used once more; with keys that may not, and a look-up; the last two again once it was looked up.
TABLE = {
    NONE: (IN_DOUBT, LOOK_UP, REPEAT, LOOK_UP, IN_DOUBT, REPEAT),
    ODD: (IN_DOUBT, LOOK_UP, IN_DOUBT, LOOK_UP, IN_DOUBT, FAILED),
    BROKE: (OPEN, LOOK_UP, REPEAT, LOOK_UP, OPEN, REPEAT),
    ERROR: (OPEN, LOOK_UP, OPEN, LOOK_UP, OPEN, FAILED),
    REFUSED: (FAILED, FAILED, FAILED, FAILED, FAILED, FAILED),
}


@proves("R-TOOL-9", part="one table for what became of a call")
@pytest.mark.parametrize("answer", list(Answer))
def test_a_change_without_a_result_has_the_fate_that_the_table_says(answer: Answer) -> None:
    sent = CallFacts(mutating=True, sent=True, answer=answer)
    found = (
        fate_of(sent),
        fate_of(sent._replace(lookup=True)),
        fate_of(sent._replace(keys=True, repeats_left=True)),
        fate_of(sent._replace(keys=True, lookup=True)),
        fate_of(sent._replace(lookup=True, look=LookUpMiss.ABSENT)),
        fate_of(sent._replace(lookup=True, conclusive=True, look=LookUpMiss.ABSENT)),
    )
    assert found == TABLE[answer]


@proves("R-TOOL-9", part="one table for what became of a call")
def test_every_combination_keeps_to_the_rules() -> None:
    for came in EVERY:
        fate = fate_of(came)
        silent_before = came.before and not came.sent
        if not came.mutating or not (came.sent or came.before):
            assert fate is FAILED, came
            continue
        absent = came.conclusive and came.look is LookUpMiss.ABSENT
        no_effect = came.answer is REFUSED or (came.final and came.answer in SAYS_SO)
        if fate is FAILED:
            # Only where it surely changed nothing.
            assert absent or (came.sent and no_effect and not came.before), came
        if fate is REPEAT:
            assert absent or (came.keys and came.repeats_left), came
            assert silent_before or came.answer in SILENT, came
        if fate is LOOK_UP:
            assert came.lookup, came
            assert came.look is LookUpMiss.NOT_YET, came
        if fate is IN_DOUBT:
            assert silent_before or came.answer in (NONE, ODD), came
        if fate is OPEN:
            # An answer said that it failed: nobody is asked.
            assert came.sent, came
            assert came.answer in SAYS_SO or (no_effect and came.before), came


@proves("R-TOOL-14", part="a change whose answer cannot be read has not failed")
@given(st.sampled_from([came for came in EVERY if came.mutating and came.sent and came.answer is ODD]))
def test_an_answer_that_cannot_be_read_is_no_failure_until_a_look_up_says_so(came: CallFacts) -> None:
    fate = fate_of(came)
    absent = came.conclusive and came.look is LookUpMiss.ABSENT
    assert fate in ({FAILED} if absent else {LOOK_UP, IN_DOUBT})


@given(st.sampled_from([came for came in EVERY if came.before and came.mutating]))
def test_what_a_later_request_is_told_settles_no_earlier_one(came: CallFacts) -> None:
    absent = came.conclusive and came.look is LookUpMiss.ABSENT
    assert fate_of(came) is not FAILED or absent


@given(st.integers(min_value=300, max_value=599))
def test_a_status_has_one_class(status: int) -> None:
    answer = answer_of(status)
    assert (answer is REFUSED) == (status in REFUSALS)
    assert (answer is BROKE) == (status >= 500 or status in (408, 425))
    assert answer in (REFUSED, BROKE, ERROR)
