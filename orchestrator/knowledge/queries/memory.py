"""Reads of memory: kept proposals, waiting proposals, and the state of a proposal's run.

Call them inside the tenant's context.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from django.contrib.postgres.search import SearchQuery, SearchRank
from django.db.models import F, OuterRef, QuerySet, Subquery

from orchestrator.core.common.run_status import Status
from orchestrator.core.domain.memory_gate import Evidence, MemoryStatus, ProposalFacts
from orchestrator.core.policy.provenance.value_matching import words_of
from orchestrator.knowledge.models.memory import MemoryProposal, MemoryVerdict
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.retry_lineage import line_of
from tenancy.core.errors import NotFound
from traces.models import Event, Snapshot
from traces.queries import load_payloads

WAITING = "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedProposal:
    """A proposal with its newest decision; `rank` is its search rank."""

    row: MemoryProposal
    verdict: str
    reason: str
    decided_at: datetime | None
    rank: float = 0.0

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The facts that the proposal rests on."""
        return tuple(Evidence.model_validate(one) for one in self.row.evidence)

    @property
    def trust(self) -> str:
        """The trust of the proposal: untrusted if its text or one of its facts is."""
        vouched = self.row.trust == "trusted" and all(one.trust == "trusted" for one in self.evidence)
        return "trusted" if vouched else "untrusted"


def list_memory_proposals(verdict: str = "") -> QuerySet[MemoryProposal]:
    """Return proposals annotated with their newest decision, newest first.

    The annotation `verdict` is None while a proposal waits. With the parameter `verdict` only proposals
    with that decision are returned.
    """
    said = MemoryVerdict.objects.filter(proposal=OuterRef("pk")).order_by("-number")
    found = MemoryProposal.objects.annotate(
        verdict=Subquery(said.values("verdict")[:1]), reason=Subquery(said.values("reason")[:1]),
        decided_at=Subquery(said.values("at")[:1]),
    )  # fmt: skip
    if verdict == WAITING:
        found = found.filter(verdict=None)
    elif verdict:
        found = found.filter(verdict=verdict)
    return found.order_by("-id")


def search_kept_memory(words: str, at: datetime, limit: int) -> list[JudgedProposal]:
    """Search kept memory for these words and return unexpired entries, best match first."""
    query = SearchQuery(words, config="simple", search_type="websearch")
    rows = (
        list_memory_proposals("kept").filter(search=query, expires_at__gt=at)
        .annotate(rank=SearchRank(F("search"), query)).order_by("-rank", "-id")[:limit]
    )  # fmt: skip
    return [build_memory_entry(row) for row in rows]


def proposal_of(proposal: UUID | None) -> JudgedProposal:
    """Return one proposal.

    Raises: NotFound, also for another tenant's.
    """
    row = None if proposal is None else list_memory_proposals().filter(id=proposal).first()
    if row is None:
        raise NotFound
    return build_memory_entry(row)


def build_memory_entry(row: Any) -> JudgedProposal:
    """Build the typed form of a row of `list_memory_proposals`."""
    return JudgedProposal(
        row=row, verdict=row.verdict or WAITING, reason=row.reason or "", decided_at=row.decided_at,
        rank=float(getattr(row, "rank", 0.0)),
    )  # fmt: skip


def facts_of_run(run: UUID, names: Iterable[str] | None = None) -> dict[str, Evidence]:
    """Return the newest version of each fact that the run committed, and of those that a retry began with."""
    events = Event.objects.filter(run_id=run, kind="fact_committed").order_by("seq")
    found = _begun_with(run)
    for event in events:
        said = orjson.loads(bytes(event.body))
        found[said["fact"]] = Evidence(
            fact=said["fact"], version=said["version"], digest=said["digest"], trust=said["trust"]
        )
    wanted = None if names is None else set(names)
    return {name: one for name, one in found.items() if wanted is None or name in wanted}


def _begun_with(run: UUID) -> dict[str, Evidence]:
    if len(line_of(run)) == 1:
        return {}
    facts = orjson.loads(bytes(Snapshot.objects.get(run_id=run, number=0).state))["facts"]
    return {
        name: Evidence(fact=name, version=one["version"], digest=one["digest"], trust=one["trust"])
        for name, one in facts.items()
    }


def words_of_facts(run: UUID, digests: Iterable[str]) -> list[str]:
    """Return the words of a run's facts, as far as their content is stored."""
    return [words_of(orjson.loads(body)) for body in load_payloads(run, digests).values()]


def strange_words(run: UUID) -> list[str]:
    """Return the untrusted texts that a run, or an earlier run of its line of retries, has read.

    These are facts of untrusted tools and the answers of failed calls. Erased content is returned as an
    empty text.
    """
    return [text for one in line_of(run) for text in _strange_words(one)]


def _strange_words(run: UUID) -> list[str]:
    events = Event.objects.filter(run_id=run, kind__in=("fact_committed", "failure_committed")).order_by(
        "seq"
    )
    said = [(event.kind, orjson.loads(bytes(event.body))) for event in events]
    facts = [one["digest"] for kind, one in said if kind == "fact_committed" and one["trust"] == "untrusted"]
    failed = [one["observation"] for kind, one in said if kind == "failure_committed" and one["observation"]]
    held = load_payloads(run, {*facts, *failed})
    told = [words_of(orjson.loads(held[one])) if one in held else "" for one in facts]
    return [*told, *(held.get(one, b"").decode("utf-8", "backslashreplace") for one in failed)]


def standing_of_run(run: UUID) -> MemoryStatus:
    """Return the state of a proposal's run that the gate checks."""
    row = Run.objects.get(id=run)
    return MemoryStatus(
        status=Status(row.status), terminal_code=row.terminal_code or "", facts=facts_of_run(run)
    )


def build_gate_input(found: JudgedProposal) -> ProposalFacts:
    """Return the data of a proposal that the gate checks."""
    row = found.row
    return ProposalFacts.model_validate(
        {"text": row.text, "kind": row.kind, "evidence": found.evidence, "expires_at": row.expires_at}
    )
