"""The tool gateway against the demo company: what is sent, what comes back, what nobody knows."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from orchestrator.core.common.argument_parsing import validate_against_schema
from orchestrator.core.domain.run_events import ToolAnswered, ToolFailed
from orchestrator.outbound.gateways.async_executor import EffectLoop
from orchestrator.tools.gateways.dispatcher import ToolGateway
from orchestrator.tools.gateways.registry import shipped_tools
from tests.doors.gateways.effects import (
    PATIENCE,
    SALT,
    ScriptedPermit,
    Told,
    call_tool,
    read,
    use_tool,
)
from tests.doubles.company import Company
from tests.doubles.http_server import Reply, ScriptedServer, Seen, reply
from tests.proves import proves
from traces.core.canonical import canonical_outside

REFUND = {"order_id": "A-1001", "amount": "10.00", "currency": "USD", "reason": "late"}
MAIL = {"to": "orders@corner-cafe.example", "subject": "Your refund", "text": "Dear Corner Café"}
ENTRY = {"account": "refunds", "amount": "-10.00", "memo": ""}


class Odd(ScriptedServer):
    """A service that answers whatever it is asked with the next reply of its script."""

    path = "/orders/A-1001"

    def answer(self, seen: Seen) -> Reply:
        """The next reply."""
        return self._script.popleft()


@pytest.fixture
def tools(company: Company) -> ToolGateway:
    """A gateway whose one service is the demo company of this test."""
    return ToolGateway(env={"INTERLOCK_DEMO_URL": company.url}.get)


def _fits(name: str, told: Told) -> bool:
    return (
        validate_against_schema(
            shipped_tools()[name].spec.output_schema, told.document(told.event.observation)
        )
        is None
    )


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("orders.lookup", {"order_id": "A-1001"}),
        ("policy.evaluate", {"order_id": "A-1001"}),
        ("policy.evaluate", {"order_id": "A-1001", "amount": "10.00"}),
        ("payments.refund", REFUND),
        ("payments.find_refund", {"refund_id": "RF-000001"}),
        ("mail.send", MAIL),
        ("mail.find", {"reference": "r"}),
        ("ledger.post", ENTRY),
        ("documents.search", {"query": "return an item", "limit": 3}),
        ("documents.read", {"passage": "returns-policy.1"}),
        ("services.list", {}),
        ("services.status", {"service": "web-shop"}),
        ("services.logs", {"service": "checkout", "limit": 2}),
        ("services.metrics", {"service": "checkout"}),
        ("services.restart", {"service": "checkout", "reason": "It hangs."}),
        ("calculator.evaluate", {"expression": "3 * 129.90"}),
        ("clock.now", {"zone": "Europe/Berlin"}),
    ],
)
@proves("R-TOOL-19", part="shipped tools")
def test_every_shipped_tool_answers_as_its_schema_says(
    loop: EffectLoop, tools: ToolGateway, name: str, arguments: dict[str, Any]
) -> None:
    told = use_tool(loop, tools, name, arguments)
    assert isinstance(told.event, ToolAnswered)
    assert _fits(name, told)


@proves("G2", part="dispatch")
def test_the_approved_bytes_are_the_bytes_that_are_sent(
    loop: EffectLoop, tools: ToolGateway, company: Company
) -> None:
    use_tool(loop, tools, "payments.refund", REFUND, key="k-1")
    (effect,) = company.effects("payments")
    assert effect["key"] == "k-1"
    assert {name: effect["body"][name] for name in REFUND} == REFUND


@pytest.mark.parametrize("amount", ["10", "10.5", "10.50"])
def test_an_amount_may_be_written_short(loop: EffectLoop, tools: ToolGateway, amount: str) -> None:
    told = use_tool(loop, tools, "payments.refund", {**REFUND, "amount": amount})
    assert isinstance(told.event, ToolAnswered)


def test_a_service_that_refunds_another_amount_is_caught(loop: EffectLoop) -> None:
    odd = {
        "id": "RF-1",
        "order_id": "A-1001",
        "amount": "99.00",
        "currency": "USD",
        "status": "x",
        "key": "k",
    }
    with Odd(reply(odd, 201)) as server:
        tools = ToolGateway(env={"INTERLOCK_DEMO_URL": server.origin}.get)
        told = use_tool(loop, tools, "payments.refund", REFUND)
    assert (told.event.error, told.event.sent) == ("malformed", True)


@proves("R-TOOL-9", part="one key, one effect")
def test_the_same_key_is_one_refund(loop: EffectLoop, tools: ToolGateway, company: Company) -> None:
    for _ in range(3):
        told = use_tool(loop, tools, "payments.refund", REFUND, key="k-1")
        assert isinstance(told.event, ToolAnswered)
    assert len(company.effects("payments")) == 1


@proves("G5")
@pytest.mark.parametrize("mode", ["hang", "commit_then_hang"])
def test_a_call_that_hangs_ends_at_its_deadline_and_may_have_happened(
    loop: EffectLoop, tools: ToolGateway, company: Company, mode: str
) -> None:
    company.faults("ledger", mode, times=1)
    # Whoever waited as long as the tool may take would wait for ten minutes.
    spec = shipped_tools()["ledger.post"].spec.evolve(timeout_ms=600_000)
    body = canonical_outside(ENTRY)
    effect = call_tool("ledger.post", body, timeout_ms=400)
    told = read(tools.start(loop, effect, body, spec, SALT, ScriptedPermit()).result(PATIENCE))
    assert (told.event.error, told.event.sent) == ("timeout", True)


@proves("G6")
def test_a_failure_after_the_commit_is_crashed_and_sent(
    loop: EffectLoop, tools: ToolGateway, company: Company
) -> None:
    company.faults("mail", "commit_then_fail", times=1)
    told = use_tool(loop, tools, "mail.send", MAIL, key="k-7")
    assert (told.event.error, told.event.sent, told.event.transient) == ("crashed", True, True)
    assert len(company.effects("mail")) == 1


@proves("R-TOOL-9", part="look-up")
def test_a_message_that_was_sent_is_found_by_its_key(
    loop: EffectLoop, tools: ToolGateway, company: Company
) -> None:
    company.faults("mail", "commit_then_fail", times=1)
    use_tool(loop, tools, "mail.send", MAIL, key="k-8")
    body = canonical_outside(MAIL)
    effect, spec = call_tool("mail.send", body, key="k-8"), shipped_tools()["mail.send"].spec
    found = tools.look_up(loop, effect, body, spec, SALT, ScriptedPermit())
    assert found.answered
    assert found.observation is not None
    assert b'"reference":"k-8"' in found.bodies[found.observation].replace(b": ", b":")
    other = tools.look_up(loop, call_tool("mail.send", body, key="k-9"), body, spec, SALT, ScriptedPermit())
    assert (other.answered, other.observation) == (True, None)


def test_a_look_up_nobody_answers_says_that_nobody_knows(
    loop: EffectLoop, tools: ToolGateway, company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.tools.gateways.dispatcher.LOOK_UP_PAUSES", (0.0, 0.0, 0.0))
    company.faults("mail", "fail", on="reads")
    body = canonical_outside(MAIL)
    spec = shipped_tools()["mail.send"].spec
    assert not tools.look_up(loop, call_tool("mail.send", body), body, spec, SALT, ScriptedPermit()).answered
    ledger = shipped_tools()["ledger.post"].spec
    entry = canonical_outside(ENTRY)
    assert not tools.look_up(
        loop, call_tool("ledger.post", entry), entry, ledger, SALT, ScriptedPermit()
    ).answered


def test_a_refusal_brings_its_reason(loop: EffectLoop, tools: ToolGateway) -> None:
    told = use_tool(loop, tools, "orders.lookup", {"order_id": "../effects"})
    assert (told.event.error, told.event.sent, told.event.transient) == ("refused", True, False)
    assert told.document(told.event.detail)["error"] == "not_found"


def test_nothing_done_is_still_only_what_the_server_says(
    loop: EffectLoop, tools: ToolGateway, company: Company
) -> None:
    company.faults("orders", "fail", times=1)
    told = use_tool(loop, tools, "orders.lookup", {"order_id": "A-1001"})
    assert (told.event.error, told.event.transient) == ("crashed", True)


def test_a_closed_port_was_surely_not_reached(loop: EffectLoop) -> None:
    tools = ToolGateway(env={"INTERLOCK_DEMO_URL": "http://127.0.0.1:9"}.get)
    told = use_tool(loop, tools, "ledger.post", ENTRY)
    assert (told.event.error, told.event.sent, told.event.transient) == ("unreachable", False, True)


@pytest.mark.parametrize(
    "address", [None, "", "file:///etc/passwd", "http://user@127.0.0.1/", "//x", "http://[::1"]
)
def test_without_a_sound_address_nothing_is_sent(loop: EffectLoop, address: str | None) -> None:
    tools = ToolGateway(env=lambda _: address)
    told = use_tool(loop, tools, "orders.lookup", {"order_id": "A-1001"})
    assert (told.event.error, told.event.sent, told.event.transient) == ("unreachable", False, False)


@proves("G1", part="second check")
@pytest.mark.parametrize(
    "arguments",
    [
        {**REFUND, "note": "x"},
        {**REFUND, "amount": 10},
        {**REFUND, "amount": "10.000"},
        {"order_id": "A-1001"},
        b"[]",
        b"\xff",
    ],
)
def test_arguments_of_another_shape_never_leave(
    loop: EffectLoop, tools: ToolGateway, company: Company, arguments: dict[str, Any] | bytes
) -> None:
    told = use_tool(loop, tools, "payments.refund", arguments)
    assert (told.event.error, told.event.sent) == ("refused", False)
    assert company.requests("payments") == []


@proves("R-BUDGET-17", part="tool gateway")
@pytest.mark.parametrize("name", ["payments.refund", "calculator.evaluate"])
def test_without_a_permit_nothing_is_done(
    loop: EffectLoop, tools: ToolGateway, company: Company, name: str
) -> None:
    body = canonical_outside(REFUND if name == "payments.refund" else {"expression": "1"})
    spec = shipped_tools()[name].spec
    permit = ScriptedPermit(reason="stopped")
    told = read(tools.start(loop, call_tool(name, body), body, spec, SALT, permit).result(PATIENCE))
    assert (told.event.error, told.event.sent, told.event.transient) == ("refused_by_wall", False, False)
    assert company.requests() == []


@proves("R-BUDGET-17", part="egress")
def test_a_redirect_is_not_followed(loop: EffectLoop, company: Company) -> None:
    with Odd(Reply(body=b"{}", status=307, headers={"location": company.url + "/orders/A-1001"})) as server:
        tools = ToolGateway(env={"INTERLOCK_DEMO_URL": server.origin}.get)
        told = use_tool(loop, tools, "orders.lookup", {"order_id": "A-1001"})
    assert told.event.error == "refused"
    assert company.requests() == []


@proves("G7")
def test_a_result_of_two_megabytes_is_bounded_and_its_digest_kept(loop: EffectLoop) -> None:
    body = b'{"id":"' + b"x" * 2_000_000 + b'"}'
    told = _answering(loop, Reply(body=body))
    assert isinstance(told.event, ToolAnswered)
    assert (told.event.truncated, told.event.size) == (True, len(body))
    assert told.bodies[told.event.observation] == body[: 256 * 1024]
    assert sha256(body).hexdigest() in told.event.request_id


@proves("G7", part="binary")
@pytest.mark.parametrize(
    "body", [b"\x00\xff\xfe", b"", b"<html>", b'{"a":NaN}', "\ufeff{}".encode(), b'{"a":"\xff"}']
)
def test_what_is_no_json_is_kept_as_it_came_and_malformed(loop: EffectLoop, body: bytes) -> None:
    told = _answering(loop, Reply(body=body))
    assert isinstance(told.event, ToolFailed)
    assert (told.event.error, told.event.sent, told.event.transient) == ("malformed", True, False)
    assert (told.bodies[told.event.detail] if told.event.detail else b"") == body


def test_a_reply_that_breaks_off_leaves_it_open(loop: EffectLoop) -> None:
    told = _answering(loop, Reply(body=b'{"a":1}').cut_at(3))
    assert (told.event.error, told.event.sent) == ("crashed", True)


@pytest.mark.parametrize(("wish", "after"), [("3", 3_000), ("999999", 30_000), ("x", None)])
def test_too_many_requests_is_passing(loop: EffectLoop, wish: str, after: int | None) -> None:
    told = _answering(loop, Reply(body=b"{}", status=429, headers={"retry-after": wish}))
    assert (told.event.error, told.event.transient, told.event.retry_after_ms) == ("refused", True, after)


def test_a_tool_that_keeps_failing_opens_its_circuit_and_no_other(
    loop: EffectLoop, tools: ToolGateway, company: Company
) -> None:
    company.faults("orders", "fail")
    words = [use_tool(loop, tools, "orders.lookup", {"order_id": "A-1001"}).event.error for _ in range(6)]
    assert words == ["crashed"] * 5 + ["circuit_open"]
    assert tools.circuits.list_blocked("tool", "orders.lookup", "mail.find") == ("orders.lookup",)
    assert len(company.requests("orders")) == 5


def test_a_local_tool_needs_no_waiting(loop: EffectLoop, tools: ToolGateway) -> None:
    body, waits = b'{"expression":"1+1"}', []
    spec = shipped_tools()["calculator.evaluate"].spec
    started = tools.start(
        loop,
        call_tool("calculator.evaluate", body),
        body,
        spec,
        SALT,
        ScriptedPermit(),
        before_wait=lambda: waits.append(1),
    )
    assert started.done()
    assert waits == []


def _answering(loop: EffectLoop, given: Reply) -> Told:
    with Odd(given) as server:
        tools = ToolGateway(env={"INTERLOCK_DEMO_URL": server.origin}.get)
        return use_tool(loop, tools, "orders.lookup", {"order_id": "A-1001"})


@proves("R-TOOL-8", part="a mark is never sent as a value")
@pytest.mark.parametrize(
    "text", ["[redacted:secret_field]", "Bearer [redacted:bearer]", "https://a:[redacted:password]@b.example"]
)
@pytest.mark.parametrize("place", ["text", "subject"])
def test_a_mark_in_place_of_a_value_is_never_sent(
    loop: EffectLoop, tools: ToolGateway, company: Company, text: str, place: str
) -> None:
    told = use_tool(loop, tools, "mail.send", MAIL | {place: text})
    assert isinstance(told.event, ToolFailed)
    assert (told.event.error, told.event.sent, told.event.transient) == ("refused", False, False)
    assert f"/{place}" in told.text(told.event.detail)
    assert company.effects() == []
