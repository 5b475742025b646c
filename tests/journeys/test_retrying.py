"""A run that failed begins again where it stood, as the demo company's own log has it (R-SESS-9)."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from uuid import UUID

import pytest

from budgets.core.dimension import Dimension
from budgets.queries import get_usage_lines
from orchestrator.core.common.errors import (
    ChangedSince,
    NoCheckpoint,
    RetriedAlready,
    RunNotOver,
    RunSucceeded,
)
from orchestrator.runs.actions.run_signals import cancel
from orchestrator.runs.queries.runs import state_now
from orchestrator.worker.effects.ledger_audit import prove_ledger
from tenancy.db.tenant_context import tenant_transaction
from tests.doubles.company import Company
from tests.doubles.openai_server import OpenAIServer, calls, said
from tests.factories.denied import DOWN
from tests.factories.foreign import called, onwards, to_the_end
from tests.factories.retrying import checkpoints, retried
from tests.factories.tenancy import apart
from tests.factories.world import World
from tests.proves import proves
from traces.actions import erase_run_payloads
from traces.core.integrity.export_format import verify_lines
from traces.exports.jsonl import export_trace
from traces.queries import list_missing_parts

REFUND = {"order_id": "A-1001", "amount": "10.00", "currency": "USD", "reason": "late"}


def refund(world: World, **inputs: str) -> UUID:
    """A refund that nobody has looked at yet."""
    return world.submit("support-refund", "Refund the order", inputs={"order_id": "A-1001", **inputs})


def failed(world: World, company: Company, order: str = "A-1001") -> UUID:
    """A refund that failed because the policy could not be asked, which it can be again."""
    company.faults("policy", "refuse", times=1)
    run = refund(world, order_id=order)
    found = to_the_end(world, run)
    assert (found.status, found.terminal_code) == ("failed", "IMPOSSIBLE"), found.reason
    return run


@proves("R-SESS-9", part="retry from a checkpoint")
def test_a_model_that_was_away_is_asked_again_and_nothing_is_read_twice(
    world: World, company: Company, server: OpenAIServer
) -> None:
    server.play(calls(called("orders.lookup", order_id="A-1001")), DOWN)
    run = world.submit("tool-loop", "Where is order A-1001?")
    assert onwards(world, run).terminal_code == "UNAVAILABLE_DEP"
    asked, read = len(server.documents), len(company.requests("orders"))
    server.play(said("It was delivered."))
    again = retried(world, run)
    found = onwards(world, again)
    assert found.terminal_code == "SUCCESS", found.reason
    # One more question to the model, in the midst of the conversation, and no call at all.
    assert len(server.documents) == asked + 1
    assert [one["role"] for one in server.documents[-1]["messages"]][-1] == "tool"
    assert len(company.requests("orders")) == read == 1
    assert world.said(again, "call_attempted") == []
    assert found.task_id == world.run(run).task_id
    (told,) = world.said(again, "run_retried")
    assert (told["run"], told["reason"], told["origin"]) == (str(run), "Try again.", str(run))
    for one in (run, again):
        world.sound(one)


@proves("R-SESS-9", part="retry from a checkpoint")
def test_a_refund_that_failed_before_the_money_is_made_once(world: World, company: Company) -> None:
    run = failed(world, company)
    assert company.effects() == []
    again = retried(world, run)
    found = world.approve_all(again)
    assert found.terminal_code == "SUCCESS", found.reason
    assert [effect["service"] for effect in company.effects()] == ["payments", "mail"]
    assert len([seen for seen in company.requests("orders") if seen["method"] == "GET"]) == 1
    assert world.result(again)["output"]["order_id"] == "A-1001"
    world.sound(again)


@proves("R-SESS-9", part="nothing happens twice")
def test_a_run_whose_mail_failed_goes_on_behind_the_refund_that_was_made(
    world: World, company: Company, server: OpenAIServer
) -> None:
    server.play(DOWN)
    run = refund(world)
    found = to_the_end(world, run)
    assert found.terminal_code == "UNAVAILABLE_DEP", found.reason
    assert [effect["service"] for effect in company.effects()] == ["payments"]
    server.play(said("Dear Ada, 129.90 USD for order A-1001 is on its way back to you."))
    again = retried(world, run)
    assert to_the_end(world, again).terminal_code == "SUCCESS"
    assert [effect["service"] for effect in company.effects()] == ["payments", "mail"]
    # The other side knows both runs as one.
    assert company.effects("mail")[0]["reference"] == str(run)
    world.sound(again)


@proves("R-SESS-9", part="nothing happens twice")
def test_from_before_a_refund_that_was_made_nothing_is_begun_again(
    world: World, company: Company, server: OpenAIServer
) -> None:
    server.play(DOWN)
    run = refund(world)
    to_the_end(world, run)
    sent = company.effects()
    found = checkpoints(world, run)
    before = [one for one in found if isinstance(one.refused, ChangedSince)]
    assert "Checks the call of payments.refund" in [one.next for one in before]
    assert [one.refused for one in found if one not in before] == [None] * (len(found) - len(before))
    for one in before:
        with pytest.raises(ChangedSince, match=r"payments\.refund"):
            retried(world, run, record=one.record)
    assert company.effects() == sent
    assert world.kinds(run).count("run_retried") == 0


@proves("R-TOOL-9", part="one key for a line of retries")
def test_a_refund_that_a_person_wrongly_said_did_not_happen_is_not_paid_twice(
    world: World, company: Company, server: OpenAIServer
) -> None:
    """The same action asked for again by a retry goes out under the first run's key, which the other side
    knows."""
    server.play(calls(called("payments.refund", **REFUND)), DOWN)
    run = world.submit("tool-loop", "Refund 10.00 of order A-1001.", boundary="support")
    onwards(world, run)
    (request,) = world.open_requests(run)
    world.decide(request, world.people.approver)
    company.faults("payments", "commit_then_hang", on="writes")
    with ThreadPoolExecutor(1) as pool:
        driving = pool.submit(apart, lambda: world.drive(run))
        company.wait_until_held("payments")
        company.kill()
        driving.result()
    # It stays away for all repetitions under the key, and cannot be looked up.
    onwards(world, run)
    company.start()
    found = to_the_end(world, run, verdict="not_happened")
    assert (found.terminal_code, world.kinds(run).count("call_in_doubt")) == ("UNAVAILABLE_DEP", 1)
    (paid,) = company.effects("payments")
    server.play(calls(called("payments.refund", **REFUND)), said("The refund is done."))
    again = retried(world, run)
    assert to_the_end(world, again).terminal_code == "SUCCESS"
    asked = [one for one in world.said(again, "call_attempted") if one["mutating"]]
    assert [one["idempotency_key"] for one in asked] == [paid["key"]]
    assert company.effects("payments") == [paid]
    world.sound(again)


@proves("R-SESS-9", part="retry from a checkpoint")
def test_only_an_ended_run_without_its_result_is_retried_and_once(world: World, company: Company) -> None:
    live = refund(world)
    with pytest.raises(RunNotOver):
        retried(world, live)
    assert world.approve_all(live).terminal_code == "SUCCESS"
    with pytest.raises(RunSucceeded):
        retried(world, live)
    run = failed(world, company, "A-1003")
    again = retried(world, run)
    with pytest.raises(RetriedAlready, match=str(again)):
        retried(world, run)
    with pytest.raises(RunNotOver):
        retried(world, again)
    assert world.approve_all(again).terminal_code == "SUCCESS"


@proves("R-SESS-9", part="retry from a checkpoint")
def test_a_retry_is_retried_in_its_turn(world: World, company: Company) -> None:
    run = failed(world, company)
    company.faults("policy", "refuse", times=1)
    second = retried(world, run)
    assert to_the_end(world, second).terminal_code == "IMPOSSIBLE"
    third = retried(world, second)
    assert world.approve_all(third).terminal_code == "SUCCESS"
    (told,) = world.said(third, "run_retried")
    assert (told["run"], told["origin"]) == (str(second), str(run))
    assert len(company.effects("payments")) == 1
    assert company.effects("mail")[0]["reference"] == str(run)
    for one in (run, second, third):
        world.sound(one)


@proves("R-SESS-9", part="retry from a checkpoint")
def test_a_cancelled_run_begins_again_at_any_of_its_checkpoints(world: World, company: Company) -> None:
    run = refund(world)
    world.drive(run)
    cancel(world.id, run, by=world.people.submitter.principal.id, reason="Not now.")
    assert world.drive(run).terminal_code == "USER_CANCEL"
    found = checkpoints(world, run)
    assert found[-1].record == 0
    assert [one.record for one in found] == sorted((one.record for one in found), reverse=True)
    with pytest.raises(NoCheckpoint):
        retried(world, run, record=world.run(run).record_number)
    with pytest.raises(NoCheckpoint):
        retried(world, run, record=10**9)
    again = retried(world, run, record=0)
    assert world.approve_all(again).terminal_code == "SUCCESS"
    assert len(company.effects("payments")) == 1
    world.sound(again)


@proves("R-SESS-9", part="a budget of its own")
def test_a_retry_has_an_account_of_its_own(world: World, company: Company) -> None:
    run = failed(world, company)
    again = retried(world, run)
    with tenant_transaction(world.id):
        before, after = get_usage_lines(run), get_usage_lines(again)
        state = state_now(again)
    assert before[Dimension.TOOL_CALLS].used > 0
    assert {line.used for line in after.values()} == {Decimal(0)}
    assert {name: line.limit for name, line in before.items()} == {
        name: line.limit for name, line in after.items()
    }
    assert (state.usage, state.clock_ms) == ({}, 0)


@proves("R-TRACE-6", part="a retry")
def test_a_retry_stands_for_itself_once_the_run_before_it_was_erased(world: World, company: Company) -> None:
    run = failed(world, company)
    again = retried(world, run)
    assert world.approve_all(again).terminal_code == "SUCCESS"
    with tenant_transaction(world.id):
        assert erase_run_payloads(run) > 0
    world.sound(again)
    assert world.result(again)["output"]["order_id"] == "A-1001"
    with tenant_transaction(world.id):
        lines = list(export_trace(again))
        assert list_missing_parts(again) == ()
    assert verify_lines(lines) == []
    assert prove_ledger(world.id).faults == []
