"""What comes of a call that stands at the end of the questions: too dear, in need of a yes, or refused one
(R-TOOL-5).
"""

from typing import Any

import orjson
import pytest

from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.domain.effects import AskApproval, CallTool
from tests.core.orchestrator.loops import BOUNDARY, loop
from tests.core.orchestrator.simulation import Simulation
from tests.core.orchestrator.test_freezing import ASKING
from tests.core.orchestrator.test_freezing import decide as answer_for_more
from tests.core.orchestrator.test_loop import LOOKUP, REFUND, decide, prompt
from tests.proves import proves


def sent(run: Simulation) -> list[str]:
    """The tools that were called so far."""
    return [effect.tool for effect in run.asked if isinstance(effect, CallTool)]


def last_answer(run: Simulation) -> tuple[str, str, str]:
    """The last question that was asked of a call, what was decided, and by which rule."""
    body: Any = run.said("call_checked")[-1]
    return body.step, body.decision, body.rule


@proves("R-TOOL-5", part="over budget: the run ends with what it has")
def test_a_call_over_its_budget_is_not_made_and_ends_the_run() -> None:
    run = loop(external_calls=0)
    run.reply(LOOKUP)
    assert sent(run) == []
    assert last_answer(run) == ("budget", "deny", "external_calls")
    (refused,) = run.said("reservation_refused")
    assert (refused.dimension, refused.limit, refused.wanted) == ("external_calls", 0, 1)
    assert (run.state.outcome, run.state.reason) == (TerminalCode.BUDGET_EXHAUSTED, "external_calls")
    assert run.state.partial


@proves("R-TOOL-5", part="over budget: people are asked for more, and meanwhile nothing is called")
@pytest.mark.parametrize(("word", "more", "made"), [("extend", {"external_calls": 1}, 2), ("reject", {}, 1)])
def test_where_the_boundary_says_so_a_call_over_its_budget_asks_for_more(
    word: str, more: dict[str, int], made: int
) -> None:
    run = loop(boundary=ASKING, external_calls=1)
    run.reply(LOOKUP)
    run.answer({"total": "20.00"})
    run.reply(("orders.lookup", {"id": "A-2"}))
    (ask,) = run.requests
    assert isinstance(ask, AskApproval)
    assert (ask.request_kind, len(sent(run)), run.state.outcome) == ("budget", 1, None)
    answer_for_more(run, word, **more)
    assert len(sent(run)) == made
    assert (run.state.outcome is None) == bool(more)


@proves("R-TOOL-5", part="high risk: a person is asked before the call")
def test_a_call_of_a_high_class_waits_for_a_persons_yes() -> None:
    run = loop()
    run.reply(REFUND)
    assert (last_answer(run), sent(run)) == (("approval", "approval_required", "no_grant"), [])
    (ask,) = run.requests
    assert isinstance(ask, AskApproval)
    decide(run, "approve")
    assert (last_answer(run)[:2], sent(run)) == (("approval", "allow"), ["payments.refund"])


@proves("R-TOOL-5", part="rejected: a structured denial, and the model may revise")
def test_a_rejected_call_is_told_as_data_and_another_may_follow() -> None:
    run = loop()
    run.reply(REFUND, LOOKUP)
    decide(run, "reject", reason=run.keep(b"Too much."))
    run.answer({"total": "20.00"})
    (told,) = run.said("call_not_run")
    denial = orjson.loads(run.contents[told.result])
    assert (denial["status"], denial["detail"]) == ("rejected", told.detail)
    assert "Too much." in denial["detail"]
    messages: Any = prompt(run)["messages"]
    results = [orjson.loads(one["text"])["status"] for one in messages if one["role"] == "tool"]
    assert results == ["rejected", "ok"]
    run.reply(("payments.refund", {"amount": "10.00", "id": "A-1"}))
    decide(run, "approve")
    assert sent(run) == ["orders.lookup", "payments.refund"]


@proves("R-TOOL-5", part="rejected: what is refused as often as it may be ends the run")
def test_the_last_rejection_that_is_allowed_ends_the_run() -> None:
    run = loop()
    for euros in range(BOUNDARY.refusal_limit):
        assert run.state.outcome is None
        run.reply(("payments.refund", {"amount": f"2{euros}.00", "id": "A-1"}))
        decide(run, "reject")
    assert (run.state.outcome, run.state.reason) == (
        TerminalCode.CONFIRM_REQUIRED, "rejected:payments.refund",
    )  # fmt: skip
    assert sent(run) == []
