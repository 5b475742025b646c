"""A server that is not ours drives the tool loop: well, badly and with malice."""

from typing import Any

import orjson
import pytest
from pytest_django import Settings

from orchestrator.runs.models.run import Run
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doubles import anthropic_server as anthropic
from tests.doubles.company import Company
from tests.doubles.openai_server import Call, OpenAIServer, Reply, calls, html, said, usage
from tests.factories.foreign import called, foreign, onwards, to_the_end
from tests.factories.world import World, company_at, make_world
from tests.proves import proves
from traces.queries import load_payloads

REFUND = {"order_id": "A-1001", "amount": "10.00", "currency": "USD", "reason": "late"}
SEVERAL: tuple[tuple[str, str, dict[str, str] | str], ...] = (
    ("call_a", "orders_lookup", {"order_id": "A-1001"}),
    ("call_b", "ledger.post", {"account": "sundry", "amount": "10.00"}),
    ("call_c", "orders_lookup", '{"order_id": '),
    ("call_d", "payments_refund", REFUND),
    ("call_e", "orders_lookup", {"order_id": "A-1002"}),
)


def results(server: OpenAIServer) -> list[tuple[str, Any]]:
    """The results the model was last told, by call id, in order."""
    messages = server.documents[-1]["messages"]
    return [(told["tool_call_id"], told["content"]) for told in messages if told["role"] == "tool"]


@proves("R-GRAPH-19", part="a server that is not ours")
@proves("R-LOOP-3", part="every call has one result")
@proves("R-GRAPH-10", part="a registered tool outside the boundary")
def test_every_call_of_a_reply_has_one_result(house: House, company: Company, settings: Settings) -> None:
    script = [Call(name, arguments, call_id) for call_id, name, arguments in SEVERAL]
    server = OpenAIServer(calls(*script), said("The refund is done."), strict_arguments=True)
    with company_at(company.url), foreign(settings, server):
        world = make_world(house)
        # The ledger is registered and the workflow names it; the boundary of support does not allow it.
        run = world.submit("tool-loop", "Refund 10.00 of order A-1001.", boundary="support")
        found = to_the_end(world, run)
        told = results(server)
    assert (found.terminal_code, found.scripted) == ("SUCCESS", False)
    assert [call for call, _ in told] == [call for call, _, _ in SEVERAL]
    assert "the boundary does not allow this tool" in told[1][1]
    assert "A-1001" in told[0][1]
    assert "A-1002" in told[4][1]
    refusals = [refused["status"] for refused in world.said(run, "call_not_run")]
    assert refusals == ["denied", "malformed"]
    rules = {one["rule"] for one in world.said(run, "call_checked") if one["decision"] == "deny"}
    assert rules == {"boundary_allow_list", "schema"}
    assert len(world.said(run, "approval_requested")) == 1
    assert [effect["body"]["amount"] for effect in company.effects()] == ["10.00"]
    assert (server.violations, server.unscripted) == ([], [])
    world.sound(run)


@proves("R-GRAPH-19", part="the other protocol")
def test_the_other_protocol_drives_the_same_loop(
    house: House, company: Company, settings: Settings, anthropic_server: anthropic.AnthropicServer
) -> None:
    look_up = anthropic.ToolUse("orders_lookup", {"order_id": "A-1001"}, "toolu_1")
    nothing = anthropic.ToolUse("shell_run", {}, "toolu_2")
    anthropic_server.play(anthropic.uses(look_up, nothing), anthropic.said("It was delivered."))
    settings.OPENAI_BASE_URL = settings.OPENAI_API_KEY = settings.INTERLOCK_MODEL = None
    settings.ANTHROPIC_BASE_URL, settings.ANTHROPIC_API_KEY = anthropic_server.url, "key"
    with company_at(company.url):
        world = make_world(house)
        run = world.submit("tool-loop", "Where is order A-1001?")
        found = onwards(world, run)
    assert (found.terminal_code, found.scripted) == ("SUCCESS", False)
    blocks = anthropic_server.documents[-1]["messages"][-1]["content"]
    assert [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"] == [
        "toolu_1",
        "toolu_2",
    ]
    assert anthropic_server.violations == []
    world.sound(run)


LOOK = called("orders.lookup", order_id="A-1001")
MANY = [Call("orders_lookup", {"order_id": "A-1001"}, f"call_{n}") for n in range(1000)]
HOSTILE: dict[str, tuple[list[Reply], str]] = {
    "empty": ([said("")] * 3, "VALIDATION_FAIL"),
    "page": ([html()] * 4, "UNAVAILABLE_DEP"),
    "long": ([said("word " * 400_000)], "SUCCESS"),
    "thousand calls": ([calls(*MANY)], "REPEATED_FAILURE"),
    "same ids": ([calls(LOOK, LOOK), said("Done.")], "SUCCESS"),
    "usage": ([calls(LOOK, usage=usage(10**18, 10**18)), said("Done.")], "SUCCESS"),
}


@proves("R-LOOP-9", part="hostile replies in a run")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_reply_has_a_typed_end(
    house: House, company: Company, settings: Settings, name: str
) -> None:
    script, code = HOSTILE[name]
    server = OpenAIServer(*script)
    with company_at(company.url), foreign(settings, server):
        world = make_world(house)
        run = world.submit("tool-loop", "Where is order A-1001?")
        found = onwards(world, run)
    assert found.terminal_code == code, found.reason
    assert server.violations == []
    world.sound(run)
    recorded(world, found)


def recorded(world: World, run: Run) -> None:
    """Every model call has its reply or failure in the trace, and its bytes are kept."""
    replies, failures = world.said(run.id, "model_replied"), world.said(run.id, "model_failed")
    assert len(replies) + len(failures) == len(world.said(run.id, "model_called"))
    wanted = tuple(one["reply"] for one in replies)
    with tenant_transaction(world.id):
        kept = load_payloads(run.id, wanted)
    assert all(int(one["usage"]["input_tokens"]) < 10**9 for one in replies)
    assert all(orjson.loads(kept[digest])["v"] == 1 for digest in wanted)
