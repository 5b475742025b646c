"""The inbox: pending requests, riskiest and nearest deadline first, and decided ones.

All functions run in the tenant's context. A page has 50 rows and starts after the key of the last row
before it.

Spec: R-APPR-9, R-UI-4.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal
from uuid import UUID

import orjson
from django.db.models import Case, IntegerField, Q, QuerySet, Value, When

from approvals.core.argument_display import ArgumentDifference, diff_shown_arguments
from approvals.core.bulk import LOW, BulkKey, explain_bulk_exclusion
from approvals.core.lifecycle import RequestStatus
from approvals.core.policy import RISKS, Decider, Refusal, explain_decision_refusal
from approvals.core.quorum import Vote, agreement_refusal, count_agreeing_people
from approvals.models import Request
from approvals.ports import RunWords, asking_runs
from approvals.queries import decisions_by_request, votes_of
from approvals.queries.assignment import build_not_snoozed_filter, handled_of, holders_of, with_snooze_end
from approvals.queries.authority import build_decidable_filter, has_related_vote, has_voted
from approvals.queries.countable_votes import counting_by_request
from approvals.queries.people import asked_of, names_of
from approvals.queries.undo import Deferred, deferred_of, kept_back
from tenancy.core.errors import InvalidInput
from tenancy.core.timestamps import read_moment
from tenancy.db.clock import database_now

Tab = Literal["mine", "open", "snoozed", "decided"]
TABS: Final[tuple[Tab, ...]] = ("mine", "open", "snoozed", "decided")
PICKED: Final[tuple[Tab, ...]] = ("mine", "open")
"""The tabs in which several are picked to be decided together."""
PAGE: Final = 50
CAP: Final = 1_000
PENDING: Final = RequestStatus.PENDING.value
LINE: Final = 300
LONGEST: Final = 64
WORDS: Final = {
    "approve": "approved", "edit": "approved with changes", "reject": "rejected",
    "revise": "asked for changes", "answer": "answered", "extend": "extended the budget",
    "happened": "confirmed that it happened", "not_happened": "confirmed that it did not happen",
    "cancel": "cancelled the run",
}  # fmt: skip
RANK = Case(
    *(When(risk=risk, then=Value(rank)) for rank, risk in enumerate(RISKS)),
    default=Value(len(RISKS)),
    output_field=IntegerField(),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Filters of a list; "" does not filter."""

    tool: str = ""
    risk: str = ""
    workflow: str = ""

    @property
    def active_filters(self) -> dict[str, str]:
        """The active filters, as in the address."""
        named = {"tool": self.tool, "risk": self.risk, "workflow": self.workflow}
        return {name: value for name, value in named.items() if value}


def filters_of(given: Mapping[str, str]) -> Filters:
    """Parse the filters of an address; an unknown risk class is dropped."""
    text = {name: given.get(name, "").strip()[:LONGEST] for name in ("tool", "risk", "workflow")}
    return Filters(**text | {"risk": text["risk"] if text["risk"] in RISKS else ""})


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedDecision:
    """One person's decision, with the person's name."""

    name: str
    kind: str
    at: datetime
    owner: UUID
    principal: UUID
    reason: str = ""
    arguments: bytes | None = None
    """Those they agreed to, where they are not those of the packet."""
    counts: bool = True
    """False for an agreement of somebody who may not decide the request any more."""

    @property
    def vote(self) -> Vote:
        """The decision as a vote for counting."""
        return Vote(str(self.owner), self.kind, self.arguments, str(self.principal))

    @property
    def word(self) -> str:
        """Return the decision as a verb in the past tense."""
        return WORDS[self.kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A request in the list.

    - `line`: a one-line summary.
    - `refusal`: why this reader may not decide it; `no_yes`: why they may only refuse it.
    - `voted`: the reader has decided already.
    - `held`: the assignee, by principal and name; `handled`: the number of other actions on it.
    - `deferred`: the newest deferral of an approval of it.
    """

    request: Request
    line: str
    run: RunWords | None
    said: tuple[NamedDecision, ...]
    refusal: Refusal | None = None
    no_yes: Refusal | None = None
    voted: bool = False
    held: tuple[UUID, str] | None = None
    handled: int = 0
    deferred: Deferred | None = None

    @property
    def stands(self) -> bool:
        """Return whether an approval can still be undone; no other decision is possible meanwhile."""
        return self.is_open and self.deferred is not None and self.deferred.stands

    @property
    def has_lapsed(self) -> bool:
        """Return whether the last deferred approval ended without effect and the request is still pending."""
        return self.is_open and self.deferred is not None and self.deferred.has_lapsed

    @property
    def words(self) -> str:
        """A text that changes with every decision and every undo."""
        kept = self.deferred.id.hex if self.deferred is not None and (self.stands or self.has_lapsed) else ""
        return f"{len(self.said)}{'+' if self.stands else '-' if self.has_lapsed else ''}{kept}"

    @property
    def is_open(self) -> bool:
        """Return whether the request is pending."""
        return self.request.status == PENDING

    @property
    def together(self) -> bool:
        """Return whether this reader may decide the request together with others."""
        alone_because = explain_bulk_exclusion(BulkKey(
            kind=self.request.kind, tool=self.request.tool, definition="", risk=self.request.risk,
            has_amount=self.request.has_amount,
        ))  # fmt: skip
        free = self.is_open and not self.stands and self.refusal is None and not self.voted
        return free and self.no_yes is None and not alone_because

    @property
    def agreeing_count(self) -> int:
        """The number of people who agreed to the approved subject, or to the packet if no decision ended
        it.
        """
        final = self.ended_by.arguments if self.ended_by is not None else None
        return count_agreeing_people([one.vote for one in self.said if one.counts], final)

    @property
    def elsewise(self) -> int:
        """The number of people who agreed to other arguments, while it is pending."""
        return sum(one.kind == "edit" for one in self.said) if self.is_open else 0

    @property
    def edited_places(self) -> tuple[ArgumentDifference, ...]:
        """The places where the approved arguments differ from the requested ones."""
        ended = self.ended_by
        if ended is None or ended.kind != "edit" or ended.arguments is None:
            return ()
        asked = orjson.loads(bytes(self.request.packet))["arguments"]
        return diff_shown_arguments(orjson.loads(asked), orjson.loads(ended.arguments))

    @property
    def ended_by(self) -> NamedDecision | None:
        """The decision that ended it; None if the expiry or the run did."""
        return self.said[-1] if self.said and self.request.status == RequestStatus.DECIDED else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """One page of a tab."""

    rows: tuple[Row, ...]
    next: str | None


def inbox_page(
    tab: Tab, decider: Decider, filters: Filters, *, cursor: str = "", done: Sequence[UUID] = ()
) -> Inbox:
    """Load a page of a tab for one person. Requests in `done` were just decided and keep their place.

    Raises: InvalidInput for an invalid cursor.
    """
    found = _apply_filters(_of_tab(tab, decider, done), filters)
    page = list(_filter_after_cursor(found, tab, cursor)[: PAGE + 1])
    rows = rows_of(page[:PAGE], decider)
    return Inbox(rows=rows, next=_encode_cursor(page[PAGE - 1], tab) if len(page) > PAGE else None)


def rows_of(requests: Sequence[Request], decider: Decider | None) -> tuple[Row, ...]:
    """Build rows for requests, in their order; without a decider no permissions are evaluated."""
    words = asking_runs().words({request.run_id for request in requests})
    said = words_of(requests)
    handled = handled_of(request.id for request in requests)
    held = holders_of(handled)
    deferred = deferred_of(request.id for request in requests)
    return tuple(
        Row(
            request=request,
            line=line_of(request),
            run=words.get(request.run_id),
            said=said[request.id],
            refusal=explain_decision_refusal(asked_of(request), decider) if decider is not None else None,
            no_yes=_no_yes(said[request.id], decider),
            voted=decider is not None and any(str(one.owner) == decider.owner for one in said[request.id]),
            held=held.get(request.id),
            handled=len(handled[request.id]),
            deferred=deferred.get(request.id),
        )
        for request in requests
    )


def _no_yes(said: Sequence[NamedDecision], decider: Decider | None) -> Refusal | None:
    """Return why a reader may not agree to the packet, though they may refuse it; None if they may."""
    return (
        None
        if decider is None
        else agreement_refusal([one.vote for one in said if one.counts], None, decider)
    )


def words_of(requests: Iterable[Request]) -> dict[UUID, tuple[NamedDecision, ...]]:
    """Load the decisions on each of these requests, in order, with names."""
    by_id = {request.id: request for request in requests}
    found = decisions_by_request(by_id)
    counting = counting_by_request(by_id, found)
    names = names_of({decision.principal for said in found.values() for decision in said})
    return {
        request: tuple(
            NamedDecision(
                name=names.get(d.principal, "somebody"),
                kind=d.kind,
                at=d.at,
                owner=d.owner,
                principal=d.principal,
                reason=d.reason,
                arguments=None if d.arguments is None else bytes(d.arguments),
                counts=vote in counting[request],
            )
            for d, vote in zip(said, votes_of(said), strict=True)
        )
        for request, said in found.items()
    }


def line_of(request: Request) -> str:
    """Summarize a request in one line: the tool's effect sentence, or the question."""
    packet = orjson.loads(bytes(request.packet))
    tool = packet.get("tool")
    text: str = tool["effect"] or tool["name"] if tool else packet["why"]
    return text if len(text) <= LINE else f"{text[:LINE]} … ({len(text) - LINE} more characters)"


def list_request_ids_in_tab(tab: Tab, decider: Decider, filters: Filters, ids: Collection[UUID]) -> set[UUID]:
    """Return which of these requests are in a filtered tab for one person."""
    found = _apply_filters(_of_tab(tab, decider, ()), filters).order_by().filter(id__in=list(ids))
    return set(found.values_list("id", flat=True))


def several_fit(tab: Tab, decider: Decider, filters: Filters) -> bool:
    """Return whether this reader may decide more than one request of a filtered tab together with others.

    It is `Row.together` as a filter.
    """
    if tab not in PICKED:
        return False
    free = build_decidable_filter(decider) & ~Q(has_voted(decider)) & ~Q(kept_back())
    free &= ~Q(has_related_vote(decider))
    fit = free & Q(kind="action", has_amount=False, risk__in=LOW)
    found = _apply_filters(_of_tab(tab, decider, ()), filters).filter(fit)
    return found.order_by()[:2].count() > 1


def workflows_that_ask() -> list[str]:
    """List the workflows whose runs have made requests, by name."""
    return list(asking_runs().workflows())


def count_requests_in_tab(tab: Tab, decider: Decider) -> int:
    """Count the requests in a tab, up to 1,001, which means more than a thousand."""
    return _of_tab(tab, decider, ()).order_by()[: CAP + 1].count()


def counts_of(decider: Decider) -> dict[Tab, int]:
    """Count the requests in each tab except "decided"."""
    return {tab: count_requests_in_tab(tab, decider) for tab in TABS if tab != "decided"}


def waiting_for(decider: Decider) -> QuerySet[Request]:
    """Return the pending requests that a person may decide and has not: the tab "mine", unordered."""
    return _of_tab("mine", decider, ()).order_by()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentDecisions:
    """Decisions of the last 24 hours: their number (at most a thousand) and the median time they took."""

    decided: int
    median: timedelta | None


def decided_lately() -> RecentDecisions:
    """Load the statistics of the last 24 hours that an empty inbox shows."""
    since = database_now() - timedelta(hours=24)
    decided = Request.objects.filter(status=RequestStatus.DECIDED.value, settled_at__gte=since)
    times = decided.order_by("-settled_at").values_list("created_at", "settled_at")[:CAP]
    took = sorted(settled - created for created, settled in times if settled is not None)
    return RecentDecisions(decided=len(took), median=took[len(took) // 2] if took else None)


def tools_that_ask() -> list[str]:
    """List the tools that requests were made for, by name; at most 200."""
    named = Request.objects.exclude(tool="").order_by("tool")
    return list(named.values_list("tool", flat=True).distinct()[:200])


def _of_tab(tab: Tab, decider: Decider, done: Sequence[UUID]) -> QuerySet[Request]:
    rows: Any = Request.objects.annotate(rank=RANK)
    if tab == "decided":
        return Request.objects.annotate(rank=RANK).exclude(status=PENDING).order_by("-settled_at", "-id")
    waiting = Q(status=PENDING)
    if tab == "mine":
        mine_still = build_decidable_filter(decider) & ~Q(has_voted(decider)) & ~Q(kept_back())
        rows, waiting = (
            with_snooze_end(rows, decider.owner),
            waiting & mine_still & build_not_snoozed_filter(),
        )
    elif tab == "snoozed":
        rows, waiting = (
            with_snooze_end(rows, decider.owner),
            waiting & build_decidable_filter(decider) & ~build_not_snoozed_filter(),
        )
    kept: QuerySet[Request] = rows.filter(waiting | Q(id__in=list(done))).order_by(
        "-rank", "expires_at", "id"
    )
    return kept


def _apply_filters(rows: QuerySet[Request], filters: Filters) -> QuerySet[Request]:
    if filters.tool:
        rows = rows.filter(tool=filters.tool)
    if filters.risk:
        rows = rows.filter(risk=filters.risk)
    return rows.filter(run_id__in=asking_runs().of_workflow(filters.workflow)) if filters.workflow else rows


def _filter_after_cursor(rows: QuerySet[Request], tab: Tab, cursor: str) -> QuerySet[Request]:
    if not cursor:
        return rows
    rank, at, row = _decode_cursor(cursor)
    if tab == "decided":
        return rows.filter(Q(settled_at__lt=at) | Q(settled_at=at, id__lt=row))
    beyond = Q(expires_at__gt=at) | Q(expires_at=at, id__gt=row)
    return rows.filter(Q(rank__lt=rank) | Q(rank=rank) & beyond)


def _encode_cursor(row: Any, tab: Tab) -> str:
    at = row.settled_at if tab == "decided" else row.expires_at
    return urlsafe_b64encode(orjson.dumps([row.rank, at.isoformat(), str(row.id)])).decode().rstrip("=")


def _decode_cursor(cursor: str) -> tuple[int, datetime, UUID]:
    try:
        rank, at, row = orjson.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        return int(rank), read_moment(at), UUID(row)
    except (ValueError, TypeError, AttributeError):
        raise InvalidInput(errors=[]) from None
