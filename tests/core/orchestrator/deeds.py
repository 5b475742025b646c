"""Runs that have done things, and what people and tools say to their way back."""

from typing import Any

import orjson

from orchestrator.core.domain.boundary import Boundary, ToolGrant
from orchestrator.core.domain.effects import CallTool
from orchestrator.core.domain.run_events import (
    GateDecided,
    Headroom,
)
from orchestrator.core.domain.tool_spec import Compensation, Reversibility, Risk, ToolSpec
from tests.core.orchestrator.loops import TOOLS, loop
from tests.core.orchestrator.simulation import NIL, Simulation

WAY = Compensation(
    tool="orders.cancel", arguments={"id": "/result/id"}, constants={"reason": "undone"},
    wanted="Order {id} stands cancelled.",
)  # fmt: skip


def tool(name: str, reversibility: Reversibility, **more: Any) -> ToolSpec:
    base = TOOLS["ledger.post"].evolve(risk=Risk.LOCAL_WRITE, honours_keys=True, trust="trusted")
    return base.evolve(**more).evolve(name=name, capability=name, reversibility=reversibility)


PLACE = tool("orders.place", Reversibility.COMPENSABLE, compensation=WAY)
CANCEL = tool("orders.cancel", Reversibility.REVERSIBLE)
NOTE = tool("orders.note", Reversibility.REVERSIBLE)
SHIP = tool("orders.ship", Reversibility.IRREVERSIBLE)
PING = tool("orders.ping", Reversibility.PURE)
ALL = TOOLS | {one.name: one for one in (PLACE, CANCEL, NOTE, SHIP, PING)}
BOUNDARY = Boundary(
    slug="test", version=1, risk_ceiling=Risk.DESTRUCTIVE, tools=(ToolGrant(name="orders.*"),),
    compensation="automatic",
)  # fmt: skip


def run_with(
    *deeds: str, boundary: Boundary = BOUNDARY, tools: dict[str, ToolSpec] = ALL, **limits: Any
) -> Simulation:
    """A run that has done these things, and waits for its model."""
    room: Any = {"side_effects": 9, "granted_side_effects": 9, "external_calls": 20} | limits
    run = loop(boundary=boundary, tools=tools, graph_tools=tuple(tools), **room)
    for number, name in enumerate(deeds, start=1):
        run.reply((name, {"n": number}))
        while run.requests:
            decide(run, "approve")
        run.answer({"id": f"O-{number}"})
    return run


def decide(run: Simulation, decision: str, room: Headroom | None = None, **more: Any) -> None:
    """A person's word on the newest open request."""
    ask = run.requests[-1]
    run.feed(
        GateDecided(
            at=run.now, request=str(ask.request), decision=decision, decision_digest=NIL, by="somebody",
            role="reviewer", packet_digest=ask.packet_digest, **more,
        ),
        room or Headroom(),
    )  # fmt: skip


def fail(run: Simulation) -> None:
    """The model refuses: the run cannot come to its result."""
    run.reply(refusal=True)


def undos(run: Simulation) -> list[tuple[str, Any]]:
    """The undoing calls asked for so far, with their arguments."""
    calls = [e for e in run.asked if isinstance(e, CallTool) and e.call.startswith("u")]
    return [(e.tool, orjson.loads(run.contents[e.arguments])) for e in calls]


def report(run: Simulation) -> dict[str, Any]:
    assert run.state.result is not None
    found: dict[str, Any] = orjson.loads(run.contents[run.state.result])
    return found


def left(run: Simulation) -> dict[str, str]:
    return {entry["call"]: entry["why"] for entry in report(run)["not_undone"]}
