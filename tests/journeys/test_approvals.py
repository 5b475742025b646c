"""The refund and its people: what the run does with their word, as the company's own log has it."""

from decimal import Decimal
from typing import Any

import orjson
import psycopg
import pytest

from approvals.core.errors import AlreadyDecided, DecisionInvalid, NotYours
from approvals.models import Decision, GrantUse, Request
from approvals.verification import check_run
from orchestrator.runs.actions.run_signals import cancel
from tenancy.db.tenant_context import tenant_transaction
from tests.doubles.company import Company
from tests.factories.world import World
from tests.proves import proves


def at_the_gate(world: World, order: str = "A-1001") -> tuple[Any, Request]:
    """A refund that waits at its finance gate: the run and the request."""
    run = world.submit("support-refund", "Refund the order", inputs={"order_id": order})
    world.drive(run)
    (request,) = world.open_requests(run)
    return run, request


def arguments_of(request: Request) -> dict[str, Any]:
    """The exact arguments that are asked for."""
    found: dict[str, Any] = orjson.loads(orjson.loads(bytes(request.packet))["arguments"])
    return found


@proves("R-APPR-2", part="evidence")
@proves("A9", part="from the bytes")
def test_the_packet_of_the_refund_says_what_it_rests_on(world: World) -> None:
    _, request = at_the_gate(world)
    packet = orjson.loads(bytes(request.packet))
    origins = {part["pointer"]: part for part in packet["provenance"]}
    assert {fact["fact"] for fact in packet["evidence"]} >= {"order", "policy"}
    assert origins["/amount"]["reference"] in {"order", "policy"}
    assert arguments_of(request)["amount"] in packet["tool"]["effect"] + packet["tool"]["blast_radius"]
    assert (packet["who"]["queue"], packet["tool"]["risk"]) == ("finance", "destructive")


@proves("R-APPR-14", part="after an edit")
def test_the_run_goes_on_with_the_edited_amount(world: World, company: Company) -> None:
    run, request = at_the_gate(world)
    edited = {**arguments_of(request), "amount": "10.00"}
    world.decide(request, world.people.approver, "edit", arguments=edited)
    world.approve_all(run)
    assert [Decimal(effect["body"]["amount"]) for effect in company.effects("payments")] == [Decimal(10)]
    world.sound(run)


@proves("R-APPR-3", part="revise: a message is written anew")
def test_a_message_that_was_sent_back_is_written_in_other_words(world: World, company: Company) -> None:
    run, money = at_the_gate(world)
    with pytest.raises(DecisionInvalid, match="cannot be sent back"):
        world.decide(money, world.people.approver, "revise", reason="Why so much?")
    world.decide(money, world.people.approver)
    world.drive(run)
    (mail,) = world.open_requests(run)
    world.decide(mail, world.people.approver, "revise", reason="Say that we are sorry.")
    world.drive(run)
    (again,) = world.open_requests(run)
    assert "we are sorry" not in arguments_of(mail)["text"]
    assert "we are sorry" in arguments_of(again)["text"]
    assert company.effects("mail") == []
    assert world.approve_all(run).terminal_code == "SUCCESS"
    (letter,) = company.effects("mail")
    assert "we are sorry" in orjson.dumps(letter["body"]).decode()
    assert len(company.effects("payments")) == 1
    world.sound(run)


@proves("R-APPR-3", part="an edit passes the schema")
def test_an_edit_the_tool_would_not_take_is_refused(world: World) -> None:
    _, request = at_the_gate(world)
    for wrong in (
        {"amount": "10.00"},
        {**arguments_of(request), "more": 1},
        {**arguments_of(request), "amount": 7},
    ):
        with pytest.raises(DecisionInvalid):
            world.decide(request, world.people.approver, "edit", arguments=wrong)
    with pytest.raises(DecisionInvalid, match="approve instead"):
        world.decide(request, world.people.approver, "edit", arguments=arguments_of(request))


@proves("A8", part="refused in a run")
def test_the_submitter_cannot_let_their_own_refund_through(world: World, company: Company) -> None:
    run, request = at_the_gate(world)
    with pytest.raises(NotYours):
        world.decide(request, world.people.submitter)
    assert world.drive(run).status == "awaiting_gate"
    assert company.effects("payments") == []


@proves("R-APPR-2", part="a run's end withdraws")
def test_a_cancelled_run_asks_nobody_any_more(world: World, company: Company) -> None:
    run, request = at_the_gate(world)
    cancel(world.id, run, by=world.people.operator.id, reason="Enough.")
    world.drive(run)
    with pytest.raises(AlreadyDecided, match="withdrawn"):
        world.decide(request, world.people.approver)
    assert company.effects("payments") == []


@proves("R-TRACE-3", part="what the trace speaks of")
@pytest.mark.parametrize("model", [Request, Decision, GrantUse], ids=lambda model: model.__name__)
def test_the_trace_misses_what_was_taken_away(
    world: World, superuser: psycopg.Connection, model: type[Request | Decision | GrantUse]
) -> None:
    run, request = at_the_gate(world)
    world.approve_all(run)
    world.sound(run)
    key = "request_id" if model is Decision else "id"
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute(f"DELETE FROM {model._meta.db_table} WHERE {key} = %s", [request.id])
    with tenant_transaction(world.id):
        assert {fault.where.split()[0] for fault in check_run(run)} >= {model.__name__}


def test_a_trace_that_cannot_be_read_is_no_riddle(world: World, superuser: psycopg.Connection) -> None:
    run, _ = at_the_gate(world)
    world.approve_all(run)
    garbled = {"event": "'{}'", "record": """'{"binds":{"grant:x":"y"}}'"""}
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        for table, body in garbled.items():
            superuser.execute(f"UPDATE traces_{table} SET body = {body} WHERE run_id = %s", [run])
    with tenant_transaction(world.id):
        assert check_run(run) == []
