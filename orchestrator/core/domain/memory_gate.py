"""The memory gate: decide which proposals of a run are promoted to memory for later runs (R-MEM-2)."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from pydantic import Field

from orchestrator.core.common.frozen_model import FrozenModel, Hex
from orchestrator.core.common.run_status import TERMINAL_STATUSES, Status
from orchestrator.core.domain.boundary import Boundary
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.policy.provenance.value_matching import (
    SearchableText,
    is_stated_in_text,
    may_come_from_text,
)

CATEGORY: Final = "memory"
SHORTEST, LONGEST = timedelta(days=1), timedelta(days=365)
MOST_EVIDENCE: Final = 10

Kind = Literal["episodic", "semantic", "procedural"]
Trust = Literal["trusted", "untrusted"]


class Evidence(FrozenModel):
    """A committed fact that a proposal is based on, in the version it had."""

    fact: str
    version: int
    digest: Hex
    trust: Trust


class ProposalFacts(FrozenModel):
    """A proposal as the gate sees it."""

    text: str = Field(min_length=1, max_length=2_000)
    kind: Kind
    evidence: tuple[Evidence, ...]
    expires_at: datetime


class MemoryStatus(FrozenModel):
    """The status of a proposal's run: its end, and the newest version of each of its facts."""

    status: Status
    terminal_code: str
    facts: dict[str, Evidence]


def explain_promotion_refusal(proposed: ProposalFacts, standing: MemoryStatus, at: datetime) -> str:
    """Explain why a proposal may not be promoted; empty if it may.

    The run must have ended with a result, every fact that the proposal names must be a current fact of that
    run, and the proposal must not have expired.
    """
    code = standing.terminal_code or standing.status.value
    asked = (
        (standing.status in TERMINAL_STATUSES, "its run is under way"),
        (standing.terminal_code == "SUCCESS", f"its run ended with {code}, not with a result"),
        (proposed.expires_at > at, "its time has run out"),
        (bool(proposed.evidence), "it rests on no fact"),
        *(
            (_is_evidence_current(one, standing), f"{one.fact} is no fact of its run, or a newer one stands")
            for one in proposed.evidence
        ),
    )  # fmt: skip
    return next((why for holds, why in asked if not holds), "")


def _is_evidence_current(one: Evidence, standing: MemoryStatus) -> bool:
    now = standing.facts.get(one.fact)
    return now is not None and (now.version, now.digest) == (one.version, one.digest)


def trust_of(text: str, evidence: Sequence[Evidence], cited: Sequence[str], strange: Sequence[str]) -> Trust:
    """Return the trust of a proposal's text, which never exceeds that of the facts it names.

    `cited` are the texts of those facts, `strange` the untrusted texts that the run had read until then. A
    model may invent a claim and name a fact for it, so its text is trusted only if a named fact states the
    claim and no untrusted text resembles it: a resembling claim may come from there, however it is worded.
    An erased text (empty) may have contained anything.
    """
    if any(one.trust == "untrusted" for one in evidence) or not all(strange):
        return "untrusted"
    said = any(is_stated_in_text(text, SearchableText(fact)) for fact in cited)
    return (
        "trusted"
        if said and not any(may_come_from_text(text, SearchableText(one)) for one in strange)
        else "untrusted"
    )


def refused_by_boundary(spec: ToolSpec, boundary: Boundary) -> str | None:
    """Explain why a boundary denies a memory tool; None if it allows the tool, or for any other tool."""
    if spec.category != CATEGORY:
        return None
    wanted = ("propose",) if spec.is_mutating else ("read", "propose")
    if boundary.memory in wanted:
        return None
    return f"the boundary gives memory as {boundary.memory!r}"
