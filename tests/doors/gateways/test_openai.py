"""The model gateway against a server of the chat-completions protocol that does everything wrong."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from orchestrator.core.domain.run_events import ModelFailed, ModelReplied
from orchestrator.llm.gateways.client import ModelGateway, subject_of
from orchestrator.outbound.gateways.async_executor import EffectLoop
from tests.doors.gateways.effects import (
    PATIENCE,
    SALT,
    ScriptedPermit,
    Told,
    ask_model,
    call_model,
    offered,
    openai_at,
    prompt,
    read,
)
from tests.doubles.http_server import reply
from tests.doubles.openai_server import (
    ABSENT,
    Call,
    OpenAIServer,
    Reply,
    calls,
    choices,
    failing,
    html,
    rate_limited,
    refused,
    said,
    usage,
)
from tests.proves import proves


def _ask(loop: EffectLoop, server: OpenAIServer, *script: Reply, **changes: Any) -> Told:
    server.play(*script)
    environment, profile = openai_at(server.url)
    told = ask_model(loop, environment, profile, **changes)
    assert server.violations == []
    return told


@proves("R-LOOP-9", part="answer")
def test_an_answer_is_its_text(loop: EffectLoop, openai_server: OpenAIServer) -> None:
    told = _ask(loop, openai_server, said("Hello."))
    assert isinstance(told.event, ModelReplied)
    assert told.text(told.event.answer) == "Hello."
    assert told.event.requests == ()
    assert told.event.usage["input_tokens"] == 120
    assert told.event.counted == "provider"
    assert told.document(told.event.reply)["model"] == "loopback-1"


@proves("R-LOOP-9", part="requests")
def test_requests_come_back_under_our_names(loop: EffectLoop, openai_server: OpenAIServer) -> None:
    request = prompt(tools=offered("orders.lookup", "orders_lookup", "clock.now"))
    told = _ask(
        loop,
        openai_server,
        calls(Call("orders_lookup", '{"x": "1"}', id="a"), Call("orders_lookup_2", {}, id="b")),
        request=request,
    )
    sent = [tool["function"]["name"] for tool in openai_server.documents[0]["tools"]]
    assert sent == ["orders_lookup", "orders_lookup_2", "clock_now"]
    assert [(r.call_id, r.name) for r in told.event.requests] == [
        ("a", "orders.lookup"),
        ("b", "orders_lookup"),
    ]
    assert told.text(told.event.requests[0].arguments) == '{"x": "1"}'


@proves("R-LOOP-9", part="refusal")
def test_a_refusal_is_marked(loop: EffectLoop, openai_server: OpenAIServer) -> None:
    told = _ask(loop, openai_server, refused("I cannot."))
    assert told.event.refusal
    assert told.event.answer is None
    assert told.document(told.event.reply)["refusal"] == "I cannot."


@proves("R-LOOP-9", part="neither")
@pytest.mark.parametrize("text", [None, "", "  \n"])
def test_neither_answer_nor_call_is_a_reply_all_the_same(
    loop: EffectLoop, openai_server: OpenAIServer, text: str | None
) -> None:
    told = _ask(loop, openai_server, said(text))
    assert isinstance(told.event, ModelReplied)
    assert (told.event.answer, told.event.requests, told.event.refusal) == (None, (), False)


@proves("M9")
@pytest.mark.parametrize(
    "broken",
    [
        choices(),
        choices(None),
        choices("x"),
        choices({"message": None}),
        html(),
        reply(None),
        reply([]),
        Reply(body=b""),
        Reply(body=b"x" * 5_000_000),
    ],
    ids=["none", "null", "text", "no-message", "html", "null-body", "list", "empty", "endless"],
)
def test_what_is_no_reply_is_malformed_and_worth_another_try(
    loop: EffectLoop, openai_server: OpenAIServer, broken: Reply
) -> None:
    told = _ask(loop, openai_server, broken)
    assert isinstance(told.event, ModelFailed)
    assert (told.event.error, told.event.transient) == ("malformed", True)
    assert told.text(told.event.detail)


@pytest.mark.parametrize(
    ("given", "error", "transient"),
    [
        (failing(500), "server_error", True),
        (failing(503), "unavailable", True),
        (html(502), "server_error", True),
        (failing(400), "rejected", False),
        (failing(404), "no_such_model", False),
        (failing(410), "no_such_model", False),
        (failing(402), "rate_limited", False),
        (failing(401), "unauthorized", False),
        (failing(403), "unauthorized", False),
        (Reply(body=b"", status=302, headers={"location": "http://127.0.0.1:1/"}), "rejected", False),
    ],
)
def test_a_refused_request_is_one_of_the_closed_words(
    loop: EffectLoop, openai_server: OpenAIServer, given: Reply, error: str, *, transient: bool
) -> None:
    told = _ask(loop, openai_server, given)
    assert (told.event.error, told.event.transient) == (error, transient)
    assert len(openai_server.seen) == 1


@proves("M10", part="retry-after")
@pytest.mark.parametrize(
    ("wish", "capped"), [("999999", 30_000), ("2", 2_000), ("-5", None), ("soon", None), ("nan", None)]
)
def test_a_wish_to_wait_is_capped(
    loop: EffectLoop, openai_server: OpenAIServer, wish: str, capped: int | None
) -> None:
    told = _ask(loop, openai_server, rate_limited(wish))
    assert (told.event.error, told.event.transient) == ("rate_limited", True)
    assert told.event.retry_after_ms in {capped, 0 if capped is None else capped}


@proves("M10", part="deadline")
def test_a_slow_server_meets_the_deadline(loop: EffectLoop, openai_server: OpenAIServer) -> None:
    told = _ask(loop, openai_server, said("late").after(600), timeout_ms=300)
    assert (told.event.error, told.event.transient) == ("timeout", True)


def test_a_closed_port_is_unreachable(loop: EffectLoop) -> None:
    environment, profile = openai_at("http://127.0.0.1:9/v1")
    told = ask_model(loop, environment, profile)
    assert (told.event.error, told.event.transient) == ("unreachable", True)


@proves("R-BUDGET-2", part="a request that was sent and dropped")
def test_a_request_that_was_taken_whole_and_never_answered_was_sent(
    loop: EffectLoop, openai_server: OpenAIServer
) -> None:
    told = _ask(loop, openai_server, Reply(body=b"", dropped=True))
    assert len(openai_server.documents) == 1
    assert (told.event.error, told.event.transient, told.event.usage) == ("cut_off", True, {})


@proves("M9", part="a connection that is cut is no malformed reply")
def test_a_reply_whose_connection_is_cut_is_cut_off(loop: EffectLoop, openai_server: OpenAIServer) -> None:
    told = _ask(loop, openai_server, said("hello" * 50).cut_at(60))
    assert isinstance(told.event, ModelFailed)
    assert (told.event.error, told.event.transient, told.event.usage) == ("cut_off", True, {})
    assert told.text(told.event.detail)


@proves("M11")
@pytest.mark.parametrize(
    "figures",
    [
        usage(-5, -1),
        ABSENT,
        None,
        usage("12", "many"),
        usage(10**18, 10**18),
        usage(1.5, 2),
        "lots",
        usage(True, 1),
    ],
)
def test_senseless_usage_becomes_our_own_estimate(
    loop: EffectLoop, openai_server: OpenAIServer, figures: Any
) -> None:
    request = prompt()
    told = _ask(loop, openai_server, said("Hello.", usage=figures), request=request)
    assert told.event.counted == "estimated"
    assert told.event.usage == {"input_tokens": Decimal(len(request)), "output_tokens": Decimal(6)}


def test_an_estimate_is_never_above_what_was_reserved(loop: EffectLoop, openai_server: OpenAIServer) -> None:
    told = _ask(loop, openai_server, said("x" * 4_000, usage=ABSENT), request=prompt("y" * 9_000))
    assert told.event.usage == {"input_tokens": Decimal(5_000), "output_tokens": Decimal(500)}


@proves("M13")
def test_call_ids_are_made_present_and_distinct(loop: EffectLoop, openai_server: OpenAIServer) -> None:
    asked = [
        Call("a", id="one"),
        Call("b", id="one"),
        Call("c", id=None),
        Call("d", id=""),
        Call("e", id="one_2"),
    ]
    first = _ask(loop, openai_server, calls(*asked))
    again = _ask(loop, openai_server, calls(*asked))
    ids = [request.call_id for request in first.event.requests]
    assert len(set(ids)) == len(ids) == 5
    assert all(ids)
    assert ids[0] == "one"
    assert ids == [request.call_id for request in again.event.requests]


@proves("M7")
def test_senseless_names_arrive_cut_for_the_core_to_refuse(
    loop: EffectLoop, openai_server: OpenAIServer
) -> None:
    names = ["x" * 5_000, "", "../../etc/passwd", "payments.refund; rm -rf"]
    told = _ask(loop, openai_server, calls(*(Call(name, id=f"i{n}") for n, name in enumerate(names))))
    assert [request.name for request in told.event.requests] == ["x" * 200, *names[1:]]


@proves("M8")
def test_two_megabytes_are_cut_before_anything_reads_them(
    loop: EffectLoop, openai_server: OpenAIServer
) -> None:
    big = '{"a": "' + "x" * 1_500_000 + '"}'
    told = _ask(loop, openai_server, calls(Call("a", big), text="é" * 1_000_000))
    assert isinstance(told.event, ModelReplied)
    kept = told.document(told.event.reply)
    assert len(kept["text"].encode()) == 256 * 1024
    assert len(told.bodies[told.event.requests[0].arguments]) == 64 * 1024
    assert sorted(kept["capped"]) == ["arguments:call_1", "text"]


@proves("M5", part="gateway")
def test_more_than_64_requests_are_counted_and_left_out(
    loop: EffectLoop, openai_server: OpenAIServer
) -> None:
    told = _ask(loop, openai_server, calls(*(Call("a", id=f"i{n}") for n in range(100))))
    assert len(told.event.requests) == 64
    assert told.document(told.event.reply)["dropped_calls"] == 36


@proves("M6", part="gateway")
@pytest.mark.parametrize("raw", ["{", "null", "[" * 100 + "]" * 100, "not json", "", '{"a": 1}{"a": 2}'])
def test_arguments_stay_the_raw_text(loop: EffectLoop, openai_server: OpenAIServer, raw: str) -> None:
    told = _ask(loop, openai_server, calls(Call("a", raw)))
    assert told.text(told.event.requests[0].arguments) == raw


def test_arguments_given_as_an_object_become_its_text(loop: EffectLoop, openai_server: OpenAIServer) -> None:
    message = {"role": "assistant", "tool_calls": [{"function": {"name": "a", "arguments": {"x": 1}}}]}
    told = _ask(loop, openai_server, choices({"message": message}))
    assert told.text(told.event.requests[0].arguments) == '{"x":1}'


def test_a_secret_in_a_reply_is_redacted_before_it_is_hashed(
    loop: EffectLoop, openai_server: OpenAIServer
) -> None:
    told = _ask(loop, openai_server, said("the key is sk-abcdefghijklmnopqrstuvwxyz012345"))
    assert not any(b"sk-abcdef" in body for body in told.bodies.values())


def test_the_conversation_is_sent_so_that_a_strict_server_takes_it(loop: EffectLoop) -> None:
    history: list[dict[str, Any]] = [
        {
            "role": "assistant",
            "text": "",
            "calls": [
                {"id": "c1", "name": "orders.lookup", "arguments": '{"order_id":"A-1001"}'},
                {"id": "c2", "name": "x" * 200, "arguments": "{broken"},
                {"id": "c3", "name": "", "arguments": ""},
            ],
        },
        {"role": "tool", "call": "c1", "name": "orders.lookup", "text": '{"status":"ok"}'},
        {"role": "tool", "call": "c2", "name": "x" * 200, "text": '{"status":"unregistered"}'},
        {"role": "user", "text": "CHECKS FAILED\nthe figure 3 stands in no fact"},
        {"role": "assistant", "text": "", "calls": []},
        {"role": "user", "text": "and now?"},
    ]
    request = prompt(history=history, tools=offered("orders.lookup"), output_schema={"type": "object"})
    with OpenAIServer(said("ok"), strict_arguments=True) as server:
        environment, profile = openai_at(server.url)
        assert isinstance(ask_model(loop, environment, profile, request).event, ModelReplied)
        assert server.violations == []
        sent = server.documents[0]
    roles = [message["role"] for message in sent["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "tool", "user", "user"]
    assert sent["max_tokens"] == 300
    assert "schema" in sent["messages"][0]["content"]


@proves("R-BUDGET-17", part="output limit")
def test_no_more_output_is_asked_for_than_was_reserved(loop: EffectLoop, openai_server: OpenAIServer) -> None:
    _ask(loop, openai_server, said("ok"), max_output_tokens=7)
    assert openai_server.documents[0]["max_tokens"] == 7


@proves("R-BUDGET-17", part="model gateway")
def test_without_a_permit_nothing_is_sent(loop: EffectLoop, openai_server: OpenAIServer) -> None:
    environment, profile = openai_at(openai_server.url)
    body, waits = prompt(), []
    permit = ScriptedPermit(reason="no_intent")
    started = ModelGateway(lambda: environment).start(
        loop, call_model(body), body, profile, SALT, permit, before_wait=lambda: waits.append(1)
    )
    told = read(started.result(PATIENCE))
    assert (told.event.error, told.event.transient) == ("refused_by_wall", False)
    assert openai_server.seen == []
    assert (permit.asked, waits) == (1, [])


@proves("P9", part="model keys")
def test_a_key_goes_only_to_the_address_it_was_given_for(
    loop: EffectLoop, openai_server: OpenAIServer
) -> None:
    environment, _ = openai_at("http://127.0.0.1:9/v1")
    _, profile = openai_at(openai_server.url)
    told = ask_model(loop, environment, profile)
    assert (told.event.error, told.event.transient) == ("no_key", False)
    assert openai_server.seen == []


def test_a_provider_that_keeps_failing_is_left_alone_for_a_while(
    loop: EffectLoop, openai_server: OpenAIServer
) -> None:
    openai_server.play(*(failing(500) for _ in range(5)), said("hello"))
    environment, profile = openai_at(openai_server.url)
    gateway, body = ModelGateway(lambda: environment), prompt()
    words = [
        read(
            gateway.start(loop, call_model(body), body, profile, SALT, ScriptedPermit()).result(PATIENCE)
        ).event.error
        for _ in range(6)
    ]
    assert words == ["server_error"] * 5 + ["circuit_open"]
    assert gateway.circuits.list_blocked("model", subject_of(profile), "openai") == (subject_of(profile),)
    assert len(openai_server.seen) == 5


@proves("R-BUDGET-2", part="the provider is tripped")
def test_a_provider_that_takes_more_than_was_reserved_is_left_alone_for_a_while(
    loop: EffectLoop, openai_server: OpenAIServer
) -> None:
    openai_server.play(said("hello", usage=usage(6_000, 10)), said("hello"))
    environment, profile = openai_at(openai_server.url)
    gateway, body = ModelGateway(lambda: environment), prompt()
    first, second = (
        read(
            gateway.start(loop, call_model(body), body, profile, SALT, ScriptedPermit()).result(PATIENCE)
        ).event
        for _ in range(2)
    )
    assert first.usage["input_tokens"] == 6_000
    assert second.error == "circuit_open"
    subject = subject_of(profile)
    assert gateway.circuits.list_blocked("use", subject, "openai") == (subject,)
    assert gateway.circuits.list_blocked("model", subject, "openai") == ()
    assert len(openai_server.seen) == 1
