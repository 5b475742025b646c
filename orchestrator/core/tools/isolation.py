"""Isolated calls: tools that a boundary allows only without effect (the decision `sandbox`).

A tool declares how a call of it can be isolated: on a copy of what it would change, or in a sandbox of the
machine. If the boundary's grant requires isolation, the run is pinned to the tool's isolated form. That form
only reads, its result is marked, and every check of a call's effects uses that form.

Spec: R-TOOL-5.
"""

from orchestrator.core.domain.boundary import Boundary
from orchestrator.core.domain.run_events import Headroom
from orchestrator.core.domain.tool_spec import Reversibility, Risk, ToolSpec, Verifier

MARK = "isolated"
SAYS = "It runs in isolation: whatever it does is done to a copy, and thrown away."


def as_granted(spec: ToolSpec, boundary: Boundary) -> ToolSpec:
    """Return the tool as this boundary grants it: isolated if required by the grant and supported."""
    grant = boundary.grant_for(spec.name)
    if grant is None or not grant.sandbox or spec.isolation == "none":
        return spec
    return with_isolation(spec)


def with_isolation(spec: ToolSpec) -> ToolSpec:
    """Return the tool's isolated form.

    Its results hold `isolated: true`, and so do the facts made from them.
    """
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
    """Return why a call that is allowed only in isolation is not made, or None if it may be made."""
    grant = boundary.grant_for(spec.name)
    if grant is None or not grant.sandbox or spec.isolated:
        return None
    return "the boundary lets it run in isolation alone, and it cannot"


def find_missing_dependency(spec: ToolSpec, headroom: Headroom) -> str | None:
    """Return what the machine lacks for a call, or None."""
    return headroom.unavailable.get(spec.name)
