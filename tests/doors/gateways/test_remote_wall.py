"""The second wall before tools that are no code of ours, and before look-ups: with the machine lying, their
servers hear nothing (R-BUDGET-17)."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from orchestrator.core.domain.effects import CallTool
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.tools.egress_policy import EgressPolicy
from orchestrator.core.tools.registration import (
    asked_admission,
    asked_declaration,
    build_http_tool_spec,
    build_remote_tool_spec,
)
from orchestrator.outbound.gateways.async_executor import EffectLoop
from orchestrator.outbound.gateways.call_rate_limiter import CallRateLimiter
from orchestrator.outbound.gateways.circuit_breaker_client import LocalCircuits
from orchestrator.outbound.gateways.effect_result import LookUpResult
from orchestrator.tools.gateways.dispatcher import ToolGateway
from orchestrator.tools.gateways.egress.service_client import CallFailed
from orchestrator.tools.gateways.mcp.mcp_client import ServerAddress, list_server_tools
from orchestrator.tools.gateways.registry import Tool, shipped_tools
from orchestrator.tools.gateways.remote_tools import NO_SECRET, request_tool, server_tool
from tests.doors.gateways.effects import PATIENCE, SALT, ScriptedPermit, call_tool, read
from tests.doubles.company import Company
from tests.doubles.http_server import Reply, ScriptedServer, Seen
from tests.doubles.mcp_server import ToolServer
from tests.doubles.mcp_server import tool_server as tool_server
from tests.doubles.mcp_server import tool_server_process as tool_server_process
from tests.proves import proves
from traces.core.canonical import canonical_outside

NOTE = {"text": "hello"}
CHANGES: dict[str, Any] = {
    "risk": "network", "reversibility": "irreversible", "recovery": "lookup",
    "lookup": {"tool": "find_note", "arguments": {"key": "/key"}, "found": "/note"},
}  # fmt: skip
MAIL = {"to": "orders@corner-cafe.example", "subject": "Your refund", "text": "Dear Corner Café"}


class Service(ScriptedServer):
    """A service that takes notes."""

    path = "/notes"

    def problems(self, seen: Seen) -> list[str]:
        """None of ours."""
        return []


class One:
    """Knows one remote tool."""

    def __init__(self, tool: Tool[Any, Any]) -> None:
        self.tool = tool

    def find(self, spec: ToolSpec) -> Tool[Any, Any]:
        """It."""
        if spec.name != self.tool.spec.name:
            raise CallFailed("refused", sent=False)
        return self.tool


def effect_of(spec: ToolSpec, body: bytes, key: str = "key-1") -> CallTool:
    """The effect that calls it."""
    return call_tool("mail.send", body, key=key).evolve(
        tool=spec.name, mutating=spec.is_mutating, lookup=spec.lookup, external=True
    )


def note_tool(server: ToolServer) -> Tool[Any, Any]:
    """The server's tool that sends a note, admitted with its look-up."""
    origin = f"http://{server.place}"
    place = ServerAddress(
        server="shop", url=server.url, leave=EgressPolicy(origins=(origin,), private=(server.place,))
    )
    found = {one.name: one.definition for one in asyncio.run(list_server_tools(place)).tools}
    sends, finds = found["send_note"], found["find_note"]
    assert sends is not None
    assert finds is not None
    given = {**CHANGES, "lookup": {**CHANGES["lookup"], "definition": finds.digest}}
    spec = build_remote_tool_spec("shop.send_note", "shop", origin, sends, asked_admission(given))
    return server_tool(spec, place, lambda drift: None)


@proves("R-BUDGET-17", part="tool servers")
@pytest.mark.parametrize("reason", ["fence", "intent", "reservation", "emergency_stop"])
def test_a_tool_server_hears_nothing_of_a_call_that_the_wall_refuses(
    loop: EffectLoop, tool_server: ToolServer, reason: str
) -> None:
    tool, tools, body = note_tool(tool_server), ToolGateway(), canonical_outside(NOTE)
    effect, remotes = effect_of(tool.spec, body), One(tool)
    lying = ScriptedPermit(reason=reason)
    told = read(tools.start(loop, effect, body, tool.spec, SALT, lying, remotes=remotes).result(PATIENCE))
    assert (told.event.error, told.event.sent) == ("refused_by_wall", False)
    looked = tools.look_up(loop, effect, body, tool.spec, SALT, lying, remotes=remotes)
    assert looked == LookUpResult(answered=False, why=f"refused by the wall: {reason}")
    assert tool_server.calls() == []
    honest = ScriptedPermit()
    sent = read(tools.start(loop, effect, body, tool.spec, SALT, honest, remotes=remotes).result(PATIENCE))
    assert sent.event.kind == "tool_answered"
    looked = tools.look_up(loop, effect, body, tool.spec, SALT, honest, remotes=remotes)
    assert (looked.answered, looked.observation is not None, honest.asked) == (True, True, 2)


@proves("R-BUDGET-17", part="HTTP tools")
def test_a_service_hears_nothing_of_a_request_that_the_wall_refuses(loop: EffectLoop) -> None:
    with Service(Reply(body=b'{"ok":true}')) as service:
        place = service.origin.removeprefix("http://")
        declaration = asked_declaration({
            "name": "crm.note", "description": "Leaves a note.", "risk": "network",
            "reversibility": "irreversible", "input_schema": {
                "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"],
            },
            "request": {"method": "POST", "url": f"{service.origin}/notes", "body": "rest"},
        })  # fmt: skip
        leave = EgressPolicy(origins=(service.origin,), private=(place,))
        tool, body = (
            request_tool(build_http_tool_spec(declaration), leave, NO_SECRET),
            canonical_outside(NOTE),
        )
        effect, tools = effect_of(tool.spec, body), ToolGateway()
        lying = ScriptedPermit(reason="reservation")
        told = read(
            tools.start(loop, effect, body, tool.spec, SALT, lying, remotes=One(tool)).result(PATIENCE)
        )
        assert (told.event.error, service.seen) == ("refused_by_wall", [])
        honest = ScriptedPermit()
        told = read(
            tools.start(loop, effect, body, tool.spec, SALT, honest, remotes=One(tool)).result(PATIENCE)
        )
        assert (told.event.kind, len(service.seen)) == ("tool_answered", 1)


def looked_up(
    loop: EffectLoop,
    tools: ToolGateway,
    *,
    spec: ToolSpec,
    run: int = 1,
    circuits: LocalCircuits | None = None,
) -> LookUpResult:
    """One look-up of a letter."""
    body = canonical_outside(MAIL)
    permit = ScriptedPermit(run=UUID(int=run))
    effect = call_tool("mail.send", body)
    return tools.look_up(loop, effect, body, spec, SALT, permit, circuits=circuits)


@proves("R-BUDGET-17", part="look-ups have a rate")
def test_a_look_up_beyond_the_rate_is_not_made(loop: EffectLoop, company: Company) -> None:
    tools = ToolGateway(env={"INTERLOCK_DEMO_URL": company.url}.get, pace=CallRateLimiter(lambda: 1.0))
    spec = shipped_tools()["mail.send"].spec.evolve(rate_per_minute=2)
    found = [looked_up(loop, tools, spec=spec, run=run) for run in (1, 1, 1, 2)]
    assert [(one.answered, one.why) for one in found] == [
        (True, ""), (True, ""), (False, "rate_limited"), (True, ""),
    ]  # fmt: skip


@proves("R-BUDGET-13", part="look-ups")
def test_a_look_up_asks_the_circuit_and_tells_it(
    loop: EffectLoop, company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.tools.gateways.dispatcher.LOOK_UP_PAUSES", (0.0, 0.0, 0.0))
    tools = ToolGateway(env={"INTERLOCK_DEMO_URL": company.url}.get)
    spec, circuits = shipped_tools()["mail.send"].spec, LocalCircuits()
    company.faults("mail", "fail", on="reads")
    found = [looked_up(loop, tools, spec=spec, run=run, circuits=circuits) for run in range(5)]
    assert {one.why for one in found} == {"unreachable"}
    before = len(company.requests())
    shut = looked_up(loop, tools, spec=spec, run=9, circuits=circuits)
    assert (shut.answered, shut.why, len(company.requests())) == (False, "circuit_open", before)
