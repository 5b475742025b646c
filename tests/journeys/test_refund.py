"""The support refund from its submission to its end, as the demo company's own log has it."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
import psycopg
import pytest

from approvals.core.errors import AlreadyDecided, Expired, NotYours
from approvals.models import Request
from budgets.core.dimension import Dimension
from budgets.queries import get_usage_lines
from orchestrator.commit.approval_timers import expire_gates_of
from orchestrator.core.common.errors import Stopped
from orchestrator.runs.actions.emergency_stop import Scope, lift_stop, stop_everything
from orchestrator.runs.actions.run_signals import cancel, pause, resume
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.runs import sentence_of
from tenancy.db.tenant_context import tenant_transaction
from tests.doubles.company import Company
from tests.factories.world import World
from tests.journeys.interleaving.clock import Clock
from tests.proves import proves


def submitted(world: World, order: str = "A-1001", **inputs: str) -> UUID:
    """A refund that nobody has looked at yet."""
    return world.submit("support-refund", "Refund the order", inputs={"order_id": order, **inputs})


def at_the_gate(world: World, order: str = "A-1001", **inputs: str) -> tuple[UUID, Request]:
    """A refund that waits for its first approver: the run and the request."""
    run = submitted(world, order, **inputs)
    assert world.drive(run).status == "awaiting_gate"
    (request,) = world.open_requests(run)
    return run, request


def refunds(company: Company) -> list[tuple[str, Decimal]]:
    """What was paid back, by order."""
    bodies = [effect["body"] for effect in company.effects("payments")]
    return [(body["order_id"], Decimal(body["amount"])) for body in bodies]


@proves("R-GRAPH-18", part="the refund")
@proves("R-APPR-1", part="action")
@pytest.mark.parametrize(
    ("order", "inputs", "paid"),
    [
        ("A-1001", {}, "129.90"),
        ("A-1001", {"amount": "0.01"}, "0.01"),
        ("A-1002", {"reason": "Falsche Größe, 東京"}, "4.50"),
        ("A-1003", {}, "899.00"),
        ("A-1006", {}, "29.80"),
        ("A-1009", {"amount": "200.00"}, "200.00"),
        ("A-1010", {}, "64.00"),
        ("A-1012", {"amount": "200"}, "200"),
    ],
)
def test_an_order_is_refunded_once_and_the_customer_told_once(
    world: World, company: Company, order: str, inputs: dict[str, str], paid: str
) -> None:
    run = submitted(world, order, **inputs)
    found = world.approve_all(run)
    assert (found.status, found.terminal_code) == ("completed", "SUCCESS"), found.reason
    assert refunds(company) == [(order, Decimal(paid))]
    (mail,) = company.effects("mail")
    assert company.get(f"/orders/{order}")["customer"]["email"] == mail["body"]["to"]
    result = str(world.result(run))
    assert order in result
    assert mail["body"]["text"] in orjson.loads(orjson.dumps(world.result(run)))["output"]["message"]
    with tenant_transaction(world.id):
        told = sentence_of(Run.objects.select_related("workflow_version").get(id=run))
        lines = get_usage_lines(run)
    # Six calls: what changed something was read back.
    assert (
        "called mail.find, mail.send, orders.lookup, payments.find_refund, payments.refund, policy.evaluate, "
        in told
    )
    assert lines[Dimension.TOOL_CALLS].used == 6
    assert told.endswith("was verified.")
    world.sound(run)


@proves("R-GRAPH-16", part="not refundable")
@pytest.mark.parametrize("order", ["A-1004", "A-1005", "A-1007", "A-1008", "A-1011", "A-9999"])
def test_what_the_policy_forbids_is_put_before_nobody(world: World, company: Company, order: str) -> None:
    run = submitted(world, order)
    found = world.drive(run)
    assert (found.status, found.terminal_code) == ("failed", "IMPOSSIBLE")
    assert world.open_requests(run) == []
    assert company.effects() == []
    assert world.result(run)["reason"]
    world.sound(run)


@proves("R-APPR-3", part="reject")
def test_a_rejected_refund_is_not_made(world: World, company: Company) -> None:
    run, request = at_the_gate(world)
    world.decide(request, world.people.approver, "reject", reason="Not this one.")
    found = world.drive(run)
    assert (found.status, found.terminal_code) == ("rejected", "CONFIRM_REQUIRED")
    assert company.effects() == []
    world.sound(run)


@proves("R-APPR-3", part="edit")
@proves("R-APPR-4", part="exactly the edited action")
def test_an_edited_refund_is_made_as_edited(world: World, company: Company) -> None:
    run, request = at_the_gate(world)
    asked = orjson.loads(orjson.loads(bytes(request.packet))["arguments"])
    world.decide(request, world.people.approver, "edit", arguments={**asked, "amount": "10.00"})
    assert world.approve_all(run).terminal_code == "SUCCESS"
    assert refunds(company) == [("A-1001", Decimal(10))]
    assert "10.00" in company.effects("mail")[0]["body"]["text"]
    world.sound(run)


@proves("R-APPR-5", part="two approvers above two hundred")
def test_much_money_takes_two_people(world: World, company: Company) -> None:
    run, request = at_the_gate(world, "A-1003")
    world.decide(request, world.people.approver)
    assert world.drive(run).status == "awaiting_gate"
    with pytest.raises((AlreadyDecided, NotYours)):
        world.decide(request, world.people.approver)
    assert company.effects() == []
    world.decide(request, world.people.second_approver)
    world.drive(run)
    assert refunds(company) == [("A-1003", Decimal(899))]


@proves("R-APPR-5", part="nobody approves their own, nor a stranger")
@proves("R-APPR-15", part="who decides is who asked at the door")
def test_neither_the_submitter_nor_a_stranger_decides(world: World, company: Company) -> None:
    run, request = at_the_gate(world)
    with pytest.raises(NotYours):
        world.decide(request, world.people.submitter)
    with pytest.raises(NotYours):
        world.decide(request, world.people.auditor)
    assert world.drive(run).status == "awaiting_gate"
    assert company.effects() == []


@proves("R-APPR-3", part="decided once")
@pytest.mark.parametrize("second", ["approve", "reject"])
def test_a_second_decision_comes_too_late(world: World, company: Company, second: str) -> None:
    run, request = at_the_gate(world)
    world.decide(request, world.people.approver)
    with pytest.raises(AlreadyDecided):
        world.decide(request, world.people.second_approver, second)
    assert world.approve_all(run).terminal_code == "SUCCESS"
    assert len(refunds(company)) == 1


@proves("R-APPR-7", part="fails closed")
def test_a_gate_that_nobody_answers_ends_the_run(
    world: World, company: Company, superuser: psycopg.Connection
) -> None:
    run, request = at_the_gate(world)
    Clock(superuser).gates_expire(run)
    with pytest.raises(Expired):
        world.decide(request, world.people.approver)
    expire_gates_of(run)
    found = world.drive(run)
    assert (found.status, found.terminal_code) == ("expired", "CONFIRM_REQUIRED")
    assert company.effects() == []
    world.sound(run)


@proves("R-APPR-14", part="a grant too old is asked for again")
def test_a_grant_that_was_not_used_in_time_pays_nothing(
    world: World, company: Company, superuser: psycopg.Connection
) -> None:
    run, request = at_the_gate(world)
    world.decide(request, world.people.approver)
    Clock(superuser).grants_expire(run)
    assert world.drive(run).status == "awaiting_gate"
    assert company.effects() == []
    assert [again.id for again in world.open_requests(run)] != [request.id]
    assert world.approve_all(run).terminal_code == "SUCCESS"
    assert len(refunds(company)) == 1
    world.sound(run)


@proves("R-APPR-1", part="clarification")
def test_the_submitter_is_asked_for_the_order(world: World, company: Company) -> None:
    run = world.submit("support-refund", "Refund the order")
    assert world.drive(run).status == "awaiting_input"
    (question,) = world.open_requests(run)
    assert question.kind == "clarification"
    world.decide(question, world.people.submitter, "answer", answer={"order_id": "A-1002"})
    assert world.approve_all(run).terminal_code == "SUCCESS"
    assert refunds(company) == [("A-1002", Decimal("4.50"))]
    world.sound(run)


@proves("R-SESS-5", part="cancelled between two gates")
@proves("R-GRAPH-16", part="cancelled")
def test_a_refund_cancelled_before_its_message_says_what_was_done(world: World, company: Company) -> None:
    run, request = at_the_gate(world)
    world.decide(request, world.people.approver)
    world.drive(run)
    cancel(world.id, run, by=world.people.operator.id, reason="Enough.")
    found = world.drive(run)
    assert (found.status, found.terminal_code) == ("cancelled", "USER_CANCEL")
    assert len(refunds(company)) == 1
    assert company.effects("mail") == []
    told = world.result(run)
    assert {"status", "reason", "completed", "next_safe_action"} <= set(told)
    world.sound(run)


@proves("R-SESS-5", part="paused at its gate")
def test_a_paused_refund_waits_even_when_it_is_approved(world: World, company: Company) -> None:
    run, request = at_the_gate(world)
    by: dict[str, Any] = {"by": world.people.operator.id, "reason": "wait"}
    pause(world.id, run, **by)
    world.drive(run)
    world.decide(request, world.people.approver)
    assert world.drive(run).status == "paused"
    assert company.effects() == []
    resume(world.id, run, **by)
    assert world.approve_all(run).terminal_code == "SUCCESS"
    assert len(refunds(company)) == 1
    world.sound(run)


SCOPES: list[tuple[Scope, str]] = [
    ("global", ""),
    ("tenant", ""),
    ("workflow", "support-refund"),
    ("tool", "payments.refund"),
]


@pytest.fixture
def stopped(world: World) -> Iterator[Callable[[Scope, str], None]]:
    """Puts a stop in force; it is lifted when the test is over, since a global one is everybody's."""
    by, found = world.people.operator.id, []

    def stop(scope: Scope, target: str) -> None:
        found.append(stop_everything(scope, tenant_id=world.id, target=target, by=by, reason="drill"))

    yield stop
    for one in found:
        lift_stop(one.id, tenant_id=one.tenant_id, by=by, reason="over")


@proves("R-SEC-9", part="between approval and payment")
@pytest.mark.parametrize(("scope", "target"), SCOPES)
def test_a_stop_is_in_force_before_the_next_effect(
    world: World, company: Company, stopped: Callable[[Scope, str], None], scope: Scope, target: str
) -> None:
    run, request = at_the_gate(world)
    world.decide(request, world.people.approver)
    stopped(scope, target)
    found = world.drive(run)
    expected = ("failed", "PERMISSION_DENIED") if scope == "tool" else ("cancelled", "USER_CANCEL")
    assert (found.status, found.terminal_code) == expected, found.reason
    assert company.effects() == []
    world.sound(run)
    if scope != "tool":
        with pytest.raises(Stopped):
            submitted(world)
