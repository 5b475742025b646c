"""Calls in isolation: what a boundary lets run only where nothing can come of it (R-TOOL-5, the decision
`sandbox`).

A tool says how a call of it can be made apart: on a copy of what it would change, or in a sandbox of the
machine. Where the boundary's grant asks for it, the run is pinned to the tool's form apart: it reads only,
its result is marked, and everything that asks what a call does asks that form.
"""

from orchestrator.core.domain.boundary import Boundary
from orchestrator.core.domain.run_events import Headroom
from orchestrator.core.domain.tool_spec import Reversibility, Risk, ToolSpec, Verifier

MARK = "isolated"
SAYS = "It runs in isolation: whatever it does is done to a copy, and thrown away."


def as_granted(spec: ToolSpec, boundary: Boundary) -> ToolSpec:
    """The tool as a run under this boundary has it: apart, where its grant says so and the tool can be."""
    grant = boundary.grant_for(spec.name)
    if grant is None or not grant.sandbox or spec.isolation == "none":
        return spec
    return with_isolation(spec)


def with_isolation(spec: ToolSpec) -> ToolSpec:
    """The tool's form apart. Its results hold `isolated: true`, and so do the facts made of them."""
    form = spec.output_schema
    marked = {
        **form,
        "properties": {**form.get("properties", {}), MARK: {"const": True}},
        "required": [*form.get("required", ()), MARK],
    }
    equal = spec.verifier.equal if spec.verifier is not None else {}
    return spec.evolve(
        isolated=True, risk=Risk.READ_ONLY, reversibility=Reversibility.PURE, compensation=None,
        verifier=Verifier(name="asked", equal=equal) if equal else None, lookup=False, side_effects="",
        description=f"{spec.description[:3_800]}\n\n{SAYS}", output_schema=marked,
        facts={**spec.facts, MARK: f"/{MARK}"},
    )  # fmt: skip


def refused_apart(spec: ToolSpec, boundary: Boundary) -> str | None:
    """Why a call that may be made only in isolation is not made at all; None where it may be."""
    grant = boundary.grant_for(spec.name)
    if grant is None or not grant.sandbox or spec.isolated:
        return None
    return "the boundary lets it run in isolation alone, and it cannot"


def find_missing_dependency(spec: ToolSpec, headroom: Headroom) -> str | None:
    """What the machine lacks for a call; None where nothing."""
    return headroom.unavailable.get(spec.name)
