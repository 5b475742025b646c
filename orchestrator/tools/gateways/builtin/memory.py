"""memory.*: look up what earlier runs left, and propose something to remember (R-TOOL-19, R-MEM-2).

A proposal names committed facts of its run and a day on which it ends. It changes no memory: after the run
has come to a result a person keeps it, through a gate that asks for those facts once more. What is found is
data with its support.
"""

from typing import Annotated
from uuid import UUID

from pydantic import Field

from orchestrator.core.domain.memory_gate import Kind
from orchestrator.core.domain.tool_spec import ReadBack, Reversibility, Risk, Verifier
from orchestrator.knowledge.queries.memory import JudgedProposal, proposal_of, search_kept_memory
from orchestrator.tools.gateways.egress.service_client import ToolContext
from orchestrator.tools.gateways.ports.memory_port import get_memory_proposer
from orchestrator.tools.gateways.registry import ToolResult, tool
from orchestrator.tools.gateways.tenant_services import in_house
from orchestrator.tools.gateways.tool_errors import build_tool_refusal, in_words
from tenancy.db.clock import database_now


class Support(ToolResult):
    """A fact that it rests on, in the version it had; `trust` is what was known of its source."""

    fact: str
    version: int
    digest: str
    trust: str


class Hit(ToolResult):
    """What is remembered, with the run it comes from and what it rests on."""

    id: str
    kind: str
    text: str
    run: str
    trust: str
    support: list[Support]
    kept_at: str
    expires_at: str
    score: str


class Hits(ToolResult):
    looked_for: str
    hits: list[Hit]


class Proposal(ToolResult):
    """`verdict`: waiting, kept, refused or quarantined."""

    id: str
    sha256: str
    kind: str
    verdict: str
    expires_at: str


@tool(
    name="memory.search", category="memory", capability="memory_search", risk=Risk.READ_ONLY,
    reversibility=Reversibility.PURE, parallel_safe=True, rate_per_minute=120, timeout_ms=10_000,
    verifier=Verifier(name="asked", equal={"/result/looked_for": "/arguments/words"}),
    facts={"first": "/hits/0/id", "second": "/hits/1/id", "third": "/hits/2/id"},
)  # fmt: skip
async def look_up_memory(
    context: ToolContext,
    words: Annotated[str, Field(min_length=1, max_length=300, description="the words to look for")],
    limit: Annotated[int, Field(ge=1, le=20, description="at most so many")] = 5,
) -> Hits:
    """Look up what earlier runs of this tenant left and a person kept. Each hit says what it rests on."""

    def look() -> Hits:
        found = search_kept_memory(words, database_now(), limit)
        return Hits(looked_for=words, hits=[_build_hit(one) for one in found])

    return await in_house(context, look)


@tool(
    name="memory.proposal", category="memory", capability="memory_proposal", risk=Risk.READ_ONLY,
    reversibility=Reversibility.PURE, trust="trusted", rate_per_minute=120, timeout_ms=10_000,
    facts={"verdict": "/verdict"},
    verifier=Verifier(name="asked", equal={"/result/id": "/arguments/proposal"}),
)  # fmt: skip
async def read_memory_proposal(
    context: ToolContext,
    proposal: Annotated[str, Field(pattern=r"^[0-9a-f-]{36}$", description="from memory.propose")],
) -> Proposal:
    """How a proposal stands."""
    try:
        wanted = UUID(proposal)
    except ValueError:
        raise build_tool_refusal("this is no id of a proposal") from None
    return await in_house(context, lambda: in_words(lambda: _build_proposal(proposal_of(wanted))))


@tool(
    name="memory.propose", category="memory", capability="memory_propose", risk=Risk.LOCAL_WRITE,
    reversibility=Reversibility.PURE, honours_keys=True, rate_per_minute=20, timeout_ms=10_000,
    side_effects="A proposal is written down; nothing is remembered.", blast_radius="one proposal",
    effect_sentence="Propose to remember: {text}", sensitive=("/text",),
    verifier=Verifier(
        name="read_back",
        read_back=ReadBack(
            tool="memory.proposal", arguments={"proposal": "/result/id"},
            equal={"/id": "/result/id", "/sha256": "/result/sha256"},
        ),
    ),
    facts={"proposal": "/id", "verdict": "/verdict"},
)  # fmt: skip
async def create_memory_proposal(
    context: ToolContext,
    text: Annotated[str, Field(min_length=1, max_length=2_000, description="one thing, said by itself")],
    kind: Annotated[
        Kind, Field(description="episodic: what happened; semantic: what is so; procedural: how")
    ],
    facts: Annotated[list[str], Field(min_length=1, max_length=10, description="ids of committed facts")],
    days: Annotated[int, Field(ge=1, le=365, description="for how long")] = 90,
) -> Proposal:
    """Propose something for later runs to know, with the facts of this run that it rests on. It is remembered
    only if a person keeps it after the run has come to a result."""
    tenant, run = context.tenant, context.run
    if tenant is None or run is None:
        raise build_tool_refusal("this tool is called for a run")

    def write() -> Proposal:
        row = get_memory_proposer()(
            tenant, run, key=context.key, kind=kind, text=text, facts=facts, days=days
        )
        return _build_proposal(proposal_of(row.id))

    return await in_house(context, lambda: in_words(write))


def _build_proposal(found: JudgedProposal) -> Proposal:
    row = found.row
    return Proposal(
        id=str(row.id), sha256=row.sha256, kind=row.kind, verdict=found.verdict,
        expires_at=row.expires_at.isoformat(),
    )  # fmt: skip


def _build_hit(found: JudgedProposal) -> Hit:
    row = found.row
    return Hit(
        id=str(row.id), kind=row.kind, text=row.text, run=str(row.run_id), trust=found.trust,
        support=[Support(**one.model_dump()) for one in found.evidence],
        kept_at=found.decided_at.isoformat() if found.decided_at else "",
        expires_at=row.expires_at.isoformat(), score=f"{found.rank:.4f}",
    )  # fmt: skip
