"""Calls that may not run, again and again: two repairs, and no third denial goes unseen (R-TOOL-5)."""

import pytest

from orchestrator.core.common.run_status import TerminalCode
from tests.core.orchestrator.loops import BOUNDARY, loop
from tests.core.orchestrator.simulation import Simulation
from tests.proves import proves

Asked = tuple[str, dict[str, str]]
WRONG: Asked = ("orders.lookup", {"order": "A-1"})
RIGHT: Asked = ("orders.lookup", {"id": "A-1"})
ALSO_WRONG: Asked = ("orders.lookup", {})
FORBIDDEN: Asked = ("ledger.post", {})
UNKNOWN: Asked = ("no.such", {})


def replies(run: Simulation, *turns: Asked) -> Simulation:
    for turn in turns:
        run.reply(turn)
        if turn is RIGHT:
            run.answer({"total": "20.00"})
    return run


@proves("R-TOOL-5", part="two repairs")
def test_malformed_arguments_are_repaired_twice_and_not_a_third_time() -> None:
    assert replies(loop(), WRONG, ALSO_WRONG).state.outcome is None
    run = replies(loop(), WRONG, ALSO_WRONG, WRONG)
    assert run.state.outcome is TerminalCode.VALIDATION_FAIL
    assert run.state.reason == "malformed:orders.lookup"
    schema = [body.detail for body in run.said("call_checked") if body.decision == "deny"]
    assert all("id" in detail for detail in schema)


def test_a_repair_that_succeeds_begins_the_count_anew() -> None:
    run = replies(loop(), WRONG, WRONG, RIGHT, WRONG, WRONG)
    assert run.state.outcome is None
    assert run.state.malformed["orders.lookup"].turns == 2


def test_the_calls_of_one_reply_are_one_attempt() -> None:
    run = loop()
    run.reply(WRONG, ALSO_WRONG, WRONG, RIGHT)
    run.answer({"total": "20.00"})
    assert run.state.outcome is None
    assert run.state.malformed["orders.lookup"].turns == 1


@proves("R-TOOL-5", part="repeated denials")
@pytest.mark.parametrize("together", [True, False])
def test_repeated_denials_end_the_run_and_call_for_security(*, together: bool) -> None:
    run = loop()
    if together:
        run.reply(FORBIDDEN, FORBIDDEN, FORBIDDEN, RIGHT)
    else:
        replies(run, FORBIDDEN, RIGHT, FORBIDDEN, RIGHT, FORBIDDEN)
    assert run.state.outcome is TerminalCode.PERMISSION_DENIED
    assert run.state.reason == "repeated_denials"
    (tripped,) = [body for body in run.said("breaker_tripped") if body.breaker == "safety"]
    assert (tripped.reason, tripped.subject, tripped.limit, tripped.actual) == (
        "repeated_denials",
        "ledger.post",
        3,
        3,
    )
    (taken,) = run.said("interrupt_taken")
    assert taken.interrupt == "permission_denied"


def test_a_boundary_may_allow_fewer_denials() -> None:
    run = loop(boundary=BOUNDARY.evolve(denial_limit=1))
    run.reply(FORBIDDEN)
    assert run.state.outcome is TerminalCode.PERMISSION_DENIED


@proves("R-TOOL-5", part="unregistered is repaired")
def test_a_name_that_is_no_tool_is_no_breach() -> None:
    run = replies(loop(), UNKNOWN, UNKNOWN, UNKNOWN)
    assert (run.state.outcome, run.state.counters.denials) == (None, 0)
    assert run.said("breaker_tripped") == []


@proves("R-TOOL-8", part="a mark is never sent as a value")
@proves("G2", part="a mark in place of a value")
def test_a_call_with_the_mark_of_a_redaction_is_refused_before_anybody_is_asked() -> None:
    run = loop()
    run.reply(("payments.refund", {"account": {"password": "[redacted:secret_field]"}, "amount": "5.00"}))
    assert (run.requests, dict(run.state.gates)) == ([], {})
    (refused,) = [body for body in run.said("call_checked") if body.decision == "deny"]
    assert (refused.step, refused.rule) == ("arguments", "schema")
    assert "/account/password" in refused.detail
