"""Words of the machine as a person reads them."""

import pytest

from budgets.core.dimension import Dimension
from orchestrator.core.readmodel.reason_texts import SENTENCES, in_words


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("no_grant", "waiting for approval"),
        ("not_refundable", "Not refundable."),
        ("already-refunded", "Already refunded."),
        ("wrong order, says the customer", "wrong order, says the customer"),
        ("cost_usd of <b>", "cost_usd of <b>"),
        ("", ""),
    ],
)
def test_a_reason_is_a_sentence_and_what_people_wrote_stays(reason: str, said: str) -> None:
    assert in_words(reason) == said


@pytest.mark.parametrize("limit", Dimension)
def test_every_limit_of_a_run_has_a_sentence_for_when_it_is_reached(limit: Dimension) -> None:
    assert limit in SENTENCES


def test_no_sentence_holds_a_word_of_the_machine() -> None:
    assert [said for said in SENTENCES.values() if "_" in said] == []
