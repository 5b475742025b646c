"""A loop over tools that read, send, pay and write, under the policy that ships; what it reads is told by the
test."""

from collections.abc import Mapping
from typing import Any

from orchestrator import bundled_content
from orchestrator.core.common.goal import Goal
from orchestrator.core.compiler.compiler import compile_graph
from orchestrator.core.domain.boundary import Boundary, ToolGrant
from orchestrator.core.domain.run_events import Headroom
from orchestrator.core.domain.tool_spec import Egress, Remote, Reversibility, Risk, ToolSpec, Verifier
from orchestrator.core.policy.rules import SHIPPED, Policy
from orchestrator.core.policy.task_scope import ScopeGrant
from tests.core.orchestrator.loops import LIMITS, OBJECT
from tests.core.orchestrator.simulation import Simulation, manifest, pins


def _tool(name: str, *, changes: bool, **more: Any) -> ToolSpec:
    base: dict[str, Any] = {
        "name": name,
        "version": 1,
        "description": name,
        "category": "test",
        "capability": name,
        "input_schema": OBJECT,
        "output_schema": OBJECT,
        "risk": Risk.NETWORK if changes else Risk.READ_ONLY,
        "reversibility": Reversibility.IRREVERSIBLE if changes else Reversibility.PURE,
        "verifier": Verifier(name="schema") if changes else None,
        "external": True,
    }
    return ToolSpec(**(base | more))


def _server(slug: str) -> Remote:
    return Remote(kind="mcp", origin=f"https://{slug}.example", server=slug, tool="t", definition="0" * 64)


OUT = Egress(argument="", marked=("/target",), allow=("https://docs.example/guide/*",))
WRITES = {"risk": Risk.LOCAL_WRITE, "reversibility": Reversibility.REVERSIBLE, "external": False}
TOOLS: Mapping[str, ToolSpec] = {
    tool.name: tool
    for tool in (
        _tool("page.read", changes=False),
        _tool("staff.find", changes=False, trust="trusted"),
        _tool("web.fetch", changes=False),
        _tool("calc.sum", changes=False, trust="trusted", category="calculator"),
        _tool("mail.send", changes=True, sensitive=("/to", "/text")),
        _tool("bank.pay", changes=True, sensitive=("/account", "/amount")),
        _tool("file.write", changes=True, sensitive=("/path", "/content"), **WRITES),
        _tool("flag.set", changes=True, **WRITES),
        _tool("shop.find", changes=False, remote=_server("shop"), egress=OUT),
        _tool("shop.note", changes=True, remote=_server("shop"), egress=OUT, **WRITES),
        _tool("shop.read", changes=False, remote=_server("shop"), egress=OUT),
    )
}
BOUNDARY = Boundary(
    slug="test",
    version=1,
    risk_ceiling=Risk.DESTRUCTIVE,
    tools=tuple(ToolGrant(name=name) for name in TOOLS),
)
GRAPH = compile_graph(
    bundled_content.get_bundled_workflow("tool-loop")
    .evolve(tools=tuple(TOOLS), boundary="test")
    .model_dump(mode="json", exclude_defaults=True)
)
ROOM = {"side_effects": 6, "granted_side_effects": 6, "external_calls": 12}


def working(
    objective: str, *, policy: Policy = SHIPPED, scope: ScopeGrant | None = None, **goal: Any
) -> Simulation:
    """A started run under a policy."""
    boundary = BOUNDARY if scope is None else BOUNDARY.evolve(scope=scope)
    held = Goal(objective=objective, **goal)
    pinned = pins(TOOLS, boundary, ("tool-loop",)).evolve(policy=policy)
    run = Simulation.of(GRAPH, manifest(GRAPH, pinned, LIMITS | ROOM, held))
    run.start()
    return run


def having_read(run: Simulation, read: Any, tool: str = "page.read", **arguments: Any) -> Simulation:
    """The run after it has read this."""
    run.reply((tool, arguments))
    run.answer(read)
    return run


def asked(run: Simulation, tool: str, room: Headroom | None = None, **arguments: Any) -> str:
    """What becomes of a call: `asks` a person, `denied`, or it `goes`."""
    if room is None:
        run.reply((tool, arguments))
    else:
        effect = next(e for e in run.open.values() if e.kind == "call_model")
        run.feed(run.model_reply(effect, (tool, arguments)), room)
    if run.requests:
        return "asks"
    return "goes" if any(e.kind == "call_tool" for e in run.open.values()) else "denied"


def ruled(run: Simulation) -> tuple[str, str]:
    """The rule of the last answer of the provenance question, without its version, and its sentence."""
    noted = [said for said in run.said("call_checked") if said.step == "provenance"][-1]
    return noted.rule.rpartition(":")[2], noted.detail
