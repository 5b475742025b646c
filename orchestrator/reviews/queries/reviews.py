"""Reads of the review queue. Call them inside the tenant's context."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast
from uuid import UUID

import orjson
from django.db.models import OuterRef, Q, QuerySet, Subquery

from approvals.core.policy import Refusal, RequestFacts, explain_decision_refusal
from approvals.queries.people import AuthorizedPrincipal, decider_of
from orchestrator.core.approval.review_item import SEVERITIES, Finding, Kind, NewestEntry, State, state_of
from orchestrator.core.domain.memory_gate import Evidence
from orchestrator.reviews.models import ReviewItem, ReviewWord
from orchestrator.runs.queries.retry_lineage import doers_of
from tenancy.core.errors import NotFound
from tenancy.core.timestamps import read_moment

LONGEST: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewState:
    """An item and the newest action on it."""

    row: ReviewItem
    last: NewestEntry
    finding: Finding | None
    note: str
    at: datetime | None

    @property
    def state(self) -> State:
        """The state: waiting, taken or answered."""
        return state_of(self.last)

    @property
    def holder(self) -> UUID | None:
        """The person who holds the item, or who answered it."""
        return UUID(self.last.by) if self.last.by and self.state != "waiting" else None

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The facts that the item rests on."""
        return tuple(Evidence.model_validate(one) for one in self.row.evidence)


def list_review_items(state: str = "", queue: str = "") -> QuerySet[Any]:
    """Return items annotated with their newest action, newest first.

    `state` and `queue` limit the result where they are given.
    """
    said = ReviewWord.objects.filter(item=OuterRef("pk")).order_by("-number")
    found = ReviewItem.objects.annotate(
        kind=Subquery(said.values("kind")[:1]), finding=Subquery(said.values("finding")[:1]),
        note=Subquery(said.values("note")[:1]), said_by=Subquery(said.values("by")[:1]),
        said_at=Subquery(said.values("at")[:1]),
    )  # fmt: skip
    if state:
        found = found.filter(answered_at__isnull=state != "answered")
    if state == "waiting":
        found = found.filter(Q(kind=None) | Q(kind="released"))
    elif state == "taken":
        found = found.filter(kind="taken")
    if queue:
        found = found.filter(queue=queue)
    return found.order_by("-id")


def list_unanswered_reviews() -> "QuerySet[ReviewItem]":
    """Return unanswered items, taken or not, without their actions."""
    return ReviewItem.objects.filter(answered_at=None)


def open_items(limit: int, cursor: str = "") -> list[ReviewState]:
    """Return unanswered items after a cursor, the most severe first, then the oldest."""
    rows = list_review_items().filter(answered_at=None).order_by("-rank", "at", "id")
    beyond = _decode_cursor(cursor)
    if beyond is None:
        return [build_review_item(row) for row in rows[:limit]]
    # Two ranges of the index, so that a late page costs the same as the first.
    rank, at, item = beyond
    alike = rows.filter(Q(at__gt=at) | Q(id__gt=item), rank=rank, at__gte=at)
    found = list(alike[:limit])
    return [build_review_item(row) for row in (*found, *rows.filter(rank__lt=rank)[: limit - len(found)])]


def answered_items(limit: int, cursor: str = "") -> list[ReviewState]:
    """Return answered items after a cursor, the newest answer first."""
    rows = list_review_items("answered")
    if (beyond := _decode_cursor(cursor)) is not None:
        _, at, item = beyond
        rows = rows.filter(Q(answered_at__lt=at) | Q(id__lt=item), answered_at__lte=at)
    return [build_review_item(row) for row in rows.order_by("-answered_at", "-id")[:limit]]


def cursor_of(one: ReviewState) -> str:
    """Return the cursor after an item in its list. An invalid cursor means the list's beginning."""
    at = one.at if one.state == "answered" and one.at is not None else one.row.at
    body = [SEVERITIES.index(one.row.severity), at.isoformat(), str(one.row.id)]
    return urlsafe_b64encode(orjson.dumps(body)).decode().rstrip("=")


def _decode_cursor(cursor: str) -> tuple[int, datetime, UUID] | None:
    if not cursor or len(cursor) > LONGEST:
        return None
    try:
        rank, at, item = orjson.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        return range(len(SEVERITIES))[rank], read_moment(at), UUID(item)
    except (ValueError, TypeError, AttributeError, IndexError):
        return None


def item_of(item: UUID | None) -> ReviewState:
    """Return one item.

    Raises: NotFound, also for another tenant's.
    """
    row = None if item is None else list_review_items().filter(id=item).first()
    if row is None:
        raise NotFound
    return build_review_item(row)


def build_review_item(row: Any) -> ReviewState:
    """Build the typed form of a row of `list_review_items`."""
    last = NewestEntry(kind=cast("Kind | None", row.kind), by=str(row.said_by or ""))
    return ReviewState(
        row=row, last=last, finding=row.finding or None, note=row.note or "", at=row.said_at
    )  # fmt: skip


def refused_to(found: ReviewState, who: AuthorizedPrincipal) -> Refusal | None:
    """Return why a person may not review an item; None where they may.

    A person may not review an item of their own run or of a line of retries that they began, without the
    scope, or outside of their queues (R-APPR-5).
    """
    (submitter, *retriers), (owner, *owners) = doers_of(found.row.run_id)
    asked = RequestFacts(
        kind="review", queue=found.row.queue, risk="read_only", amount=None, has_amount=False,
        submitter=str(submitter), submitter_owner=str(owner),
        retriers=tuple(map(str, retriers)), retrier_owners=tuple(map(str, owners)),
    )  # fmt: skip
    return explain_decision_refusal(asked, decider_of(who))
