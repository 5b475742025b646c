"""Memory: what a run proposes, and what somebody keeps of it (R-MEM-1, R-MEM-2)."""

from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Literal
from uuid import UUID

from orchestrator.core.approval.errors import MemoryRefused
from orchestrator.core.domain.memory_gate import (
    LONGEST,
    MOST_EVIDENCE,
    SHORTEST,
    Kind,
    explain_promotion_refusal,
    trust_of,
)
from orchestrator.knowledge.models.memory import MemoryProposal, MemoryVerdict
from orchestrator.knowledge.queries.memory import (
    WAITING,
    JudgedProposal,
    build_gate_input,
    facts_of_run,
    proposal_of,
    standing_of_run,
    strange_words,
    words_of_facts,
)
from orchestrator.runs.queries.retry_lineage import doers_of
from tenancy.actions import write_audit_entry
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import take_advisory_lock, tenant_transaction
from tenancy.people.dual_control import check_independent

Verdict = Literal["kept", "refused", "quarantined"]


def propose_memory(
    tenant_id: UUID, run: UUID, *, key: str, kind: Kind, text: str, facts: Sequence[str], days: int
) -> MemoryProposal:
    """Write down what a run proposes to remember, once a key. It is in no memory. Joins the caller's
    transaction. Raises MemoryRefused for facts that the run has not committed."""
    known = MemoryProposal.objects.filter(run_id=run, key=key).first()
    if known is not None:
        return known
    names = list(dict.fromkeys(facts))
    found = facts_of_run(run, names)
    missing = [name for name in names if name not in found]
    if missing or not names or len(names) > MOST_EVIDENCE:
        detail = f"the run committed no fact {missing[0]}" if missing else "it rests on 1 to 10 facts"
        raise MemoryRefused(detail=detail)
    lasts = timedelta(days=days)
    if not SHORTEST <= lasts <= LONGEST:
        raise MemoryRefused(detail="what is remembered lasts 1 to 365 days")
    at, evidence = database_now(), [found[name] for name in names]
    cited = words_of_facts(run, (one.digest for one in evidence))
    trust = trust_of(text, evidence, cited, strange_words(run))
    return MemoryProposal.objects.create(
        tenant_id=tenant_id, run_id=run, key=key, kind=kind, text=text, trust=trust,
        sha256=sha256(text.encode()).hexdigest(),
        evidence=[one.model_dump() for one in evidence], expires_at=at + lasts, at=at,
    )  # fmt: skip


def judge_memory(
    tenant_id: UUID, proposal: UUID | None, verdict: Verdict, *, by: UUID, reason: str
) -> JudgedProposal:
    """Keep a proposal, refuse it, or put what was kept into quarantine. Outermost verb: owns the transaction.

    Nothing is kept but through the gate, whoever asks, nor by somebody related to those behind the run where
    another administrator could. Raises NotFound, MemoryRefused, NotIndependent.
    """
    with tenant_transaction(tenant_id):
        take_advisory_lock(f"memory:{tenant_id}")
        found, at = proposal_of(proposal), database_now()
        _check_verdict_allowed(found, verdict)
        if verdict == "kept":
            name = f"memory:{found.row.id}"
            what = "A memory was kept by an administrator who is behind its run or related to those who are."
            check_independent(tenant_id, name, doers_of(found.row.run_id), what, by=by, reason=reason)
            why = explain_promotion_refusal(build_gate_input(found), standing_of_run(found.row.run_id), at)
            if why:
                raise MemoryRefused(detail=why)
        number = MemoryVerdict.objects.filter(proposal=found.row).count()
        MemoryVerdict.objects.create(
            tenant_id=tenant_id,
            proposal=found.row,
            number=number,
            verdict=verdict,
            reason=reason,
            by=by,
            at=at,
        )
        write_audit_entry(
            tenant_id, by, verb=f"memory.{verdict}", object=f"memory:{found.row.id}",
            before={"verdict": found.verdict}, after={"verdict": verdict}, reason=reason,
        )  # fmt: skip
        return proposal_of(found.row.id)


def _check_verdict_allowed(found: JudgedProposal, verdict: Verdict) -> None:
    """A proposal is decided once; what was kept may be put into quarantine, and kept again from there."""
    may = {
        WAITING: ("kept", "refused"), "kept": ("quarantined",),
        "quarantined": ("kept", "refused"), "refused": (),
    }  # fmt: skip
    if verdict not in may[found.verdict]:
        raise MemoryRefused(detail=f"it is {found.verdict}")
