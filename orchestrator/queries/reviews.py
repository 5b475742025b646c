"""Reads of the review queue. Inside the tenant's context."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from django.db.models import Case, OuterRef, Q, QuerySet, Subquery, Value, When

from approvals.core.policy import Asked, Refusal, refusal
from approvals.queries.people import Stands, decider_of
from orchestrator.core.memory import Evidence
from orchestrator.core.review import SEVERITIES, Finding, Kind, Last, State, state_of
from orchestrator.models import ReviewItem, ReviewWord, Run
from tenancy.core.errors import NotFound

RANK = Case(*(When(severity=name, then=Value(rank)) for rank, name in enumerate(SEVERITIES)), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """An item and what was done with it last."""

    row: ReviewItem
    last: Last
    finding: Finding | None
    note: str
    at: datetime | None

    @property
    def state(self) -> State:
        """waiting, taken or answered."""
        return state_of(self.last)

    @property
    def holder(self) -> UUID | None:
        """Whose it is, or who answered it."""
        return UUID(self.last.by) if self.last.by and self.state != "waiting" else None

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The facts that it rests on."""
        return tuple(Evidence.model_validate(one) for one in self.row.evidence)


def items(state: str = "", queue: str = "") -> QuerySet[Any]:
    """Items with their newest word, newest first; only those that stand so, or in that queue, where named."""
    said = ReviewWord.objects.filter(item=OuterRef("pk")).order_by("-number")
    found = ReviewItem.objects.annotate(
        kind=Subquery(said.values("kind")[:1]), finding=Subquery(said.values("finding")[:1]),
        note=Subquery(said.values("note")[:1]), said_by=Subquery(said.values("by")[:1]),
        said_at=Subquery(said.values("at")[:1]), rank=RANK,
    )  # fmt: skip
    if state == "waiting":
        found = found.filter(Q(kind=None) | Q(kind="released"))
    elif state:
        found = found.filter(kind=state)
    if queue:
        found = found.filter(queue=queue)
    return found.order_by("-id")


def unanswered() -> QuerySet[Any]:
    """Items that nobody has answered, taken or not."""
    return items().filter(Q(kind=None) | ~Q(kind="answered"))


def open_items(limit: int) -> list[Reviewed]:
    """What nobody has answered, the gravest first, then the oldest."""
    rows = unanswered().order_by("-rank", "at", "id")[:limit]
    return [reviewed(row) for row in rows]


def answered_items(limit: int) -> list[Reviewed]:
    """What was answered, the newest answer first."""
    return [reviewed(row) for row in items("answered").order_by("-said_at", "-id")[:limit]]


def item_of(item: UUID | None) -> Reviewed:
    """One item. Raises NotFound, also for another tenant's."""
    row = None if item is None else items().filter(id=item).first()
    if row is None:
        raise NotFound
    return reviewed(row)


def reviewed(row: Any) -> Reviewed:
    """A row of `items`, typed."""
    last = Last(kind=cast("Kind | None", row.kind), by=str(row.said_by or ""))
    return Reviewed(
        row=row, last=last, finding=row.finding or None, note=row.note or "", at=row.said_at
    )  # fmt: skip


def refused_to(found: Reviewed, who: Stands) -> Refusal | None:
    """Why somebody may not review an item: not on their own run, not without the scope, not in another queue
    than theirs (R-APPR-5). None where they may."""
    run = Run.objects.only("submitted_by", "owner").get(id=found.row.run_id)
    asked = Asked(
        kind="review", queue=found.row.queue, risk="read_only", amount=None, has_amount=False,
        submitter=str(run.submitted_by), submitter_owner=str(run.owner),
    )  # fmt: skip
    return refusal(asked, decider_of(who))
