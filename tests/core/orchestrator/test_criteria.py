"""A criterion about the answer is asked of the draft, wherever it is asked (R-GRAPH-13)."""

from orchestrator.core.common.goal import Criterion
from orchestrator.core.common.run_status import TerminalCode
from tests.core.orchestrator.test_refund_walk import Walking
from tests.proves import proves


def walked(*acceptance: Criterion) -> TerminalCode | None:
    walking = Walking({"order_id": "A-1001"}, acceptance=acceptance)
    walking.decide("approve")
    if walking.state.outcome is None:
        walking.decide("approve")
    return walking.state.outcome


@proves("R-GRAPH-13", part="criteria about the answer")
def test_a_text_that_stands_in_the_draft_is_found() -> None:
    assert walked(Criterion(validator="contains", parameters={"text": "A-1001"})) is TerminalCode.SUCCESS


def test_a_text_that_does_not_is_missed() -> None:
    code = walked(Criterion(validator="contains", parameters={"text": "voucher"}))
    assert code is TerminalCode.LOW_CONFIDENCE


def test_a_criterion_about_the_message_waits_until_it_was_sent() -> None:
    assert walked(Criterion(validator="fact_committed", parameters={"fact": "mail"})) is TerminalCode.SUCCESS
