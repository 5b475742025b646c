"""One tool of each kind that the recovery table tells apart, and a boundary that allows them all."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from orchestrator.core.domain.boundary import Boundary, ToolGrant
from orchestrator.core.domain.tool_spec import Reversibility, Risk, ToolSpec, Verifier

PROMPT = "test-prompt"


def _tool(name: str, *, risk: Risk, reversibility: Reversibility, **more: Any) -> ToolSpec:
    return ToolSpec(
        name=name,
        version=1,
        description=name,
        category="test",
        capability=name,
        input_schema={
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "additionalProperties": False,
        },
        output_schema={"type": "object"},
        risk=risk,
        reversibility=reversibility,
        timeout_ms=1_000,
        **more,
    )


_SCHEMA = Verifier(name="schema")
TOOLS: Mapping[str, ToolSpec] = {
    tool.name: tool
    for tool in (
        _tool("t.read", risk=Risk.READ_ONLY, reversibility=Reversibility.PURE, parallel_safe=True),
        _tool(
            "t.keyed",
            risk=Risk.DESTRUCTIVE,
            reversibility=Reversibility.REVERSIBLE,
            honours_keys=True,
            verifier=_SCHEMA,
        ),
        _tool(
            "t.found",
            risk=Risk.NETWORK,
            reversibility=Reversibility.IRREVERSIBLE,
            lookup=True,
            verifier=_SCHEMA,
        ),
        _tool("t.bare", risk=Risk.LOCAL_WRITE, reversibility=Reversibility.REVERSIBLE, verifier=_SCHEMA),
    )
}
BOUNDARY = Boundary(
    slug="test",
    version=1,
    tools=(ToolGrant(name="t.*"),),
    risk_ceiling=Risk.DESTRUCTIVE,
    budget={
        "model_turns": Decimal(8),
        "tool_calls": Decimal(12),
        "steps": Decimal(12),
        "wall_clock_seconds": Decimal(300),
        "retries": Decimal(1),
    },
)
