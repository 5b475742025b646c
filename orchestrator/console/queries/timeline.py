"""Pages of a run's trace, as rows (R-UI-3). A page reads a few hundred events, however long the run is.

A row is placed at its first event, so a page is read with a margin on both sides: before it for rows that
began earlier, after it for the end of its own rows. Call it inside the tenant's context.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import orjson
from django.db.models import BooleanField, Q, QuerySet
from django.db.models.expressions import RawSQL

from orchestrator.core.readmodel.timeline import (
    KINDS,
    EventLabel,
    Mood,
    Row,
    Voice,
    bar_of,
    fold_events,
    said_of,
)
from orchestrator.core.readmodel.timeline.event_labels import JUDGED, EventText, mood_of
from orchestrator.runs.queries.run_list import names_of
from tenancy.db.tenant_context import raw_cursor
from tenancy.rest.api_helpers import uuid_or_none
from traces.models import Event

A_PAGE: Final = 200
MARGIN: Final = 200
FOUND: Final = 100
HITS: Final = 20
LONGEST: Final = 200
SHOWS: Final = ("all", "problems", "model", "tools", "approvals", "money")
_MODEL = ("model_called", "model_replied", "model_failed", "retry_scheduled", "budget_settled")
_TOOLS = (
    *(kind for kind in KINDS if kind.startswith(("call_", "fact_", "failure_"))),
    *("budget_settled", "retry_scheduled", "reconciled"),
)
_PEOPLE = (
    *(kind for kind in KINDS if kind.startswith(("approval_", "grant_"))),
    *("question_answered", "decision_refused", "cancel_asked", "stop_asked", "run_paused", "reconciled"),
    "run_retried",
)
FOLDED: Final = {"model": _MODEL, "tools": _TOOLS, "approvals": _PEOPLE}
_MONEY = tuple(kind for kind, words in KINDS.items() if words.voice is Voice.MONEY)
_BAD = tuple(kind for kind, words in KINDS.items() if words.mood is Mood.PROBLEM)
MOODS: Final = {Mood.PROBLEM: ("alert", "Problem"), Mood.WAIT: ("diamond", "Waits")}
VOICES: Final = {
    Voice.MODEL: "agent", Voice.TOOL: "tool", Voice.PEOPLE: "person", Voice.MONEY: "money",
    Voice.RUN: "system", Voice.ANSWER: "system",
}  # fmt: skip
MENTIONS = "convert_from(body, 'UTF8') ILIKE ANY(%s)"
HOLDING = """
SELECT encode(digest, 'hex') FROM traces_payload
 WHERE run_id = %s AND body IS NOT NULL AND position(%s::bytea IN body) > 0 LIMIT %s"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRow:
    """A row and the people who decided in it."""

    row: Row
    who: str

    @property
    def event_sentences(self) -> tuple[tuple[EventLabel, EventText], ...]:
        """The row's events with their sentences."""
        return tuple((told, said_of(told)) for told in self.row.events)

    @property
    def symbol(self) -> tuple[str, str]:
        """The row's icon, and a label for a meaning that the sentences do not express."""
        return MOODS.get(self.row.mood) or (VOICES[self.row.voice], "")

    @property
    def took(self) -> float | None:
        """The seconds from the row's first event to its newest.

        None where there is one event, or the row is not complete.
        """
        row = self.row
        return None if row.last == row.seq or row.mood in (Mood.BUSY, Mood.WAIT) else row.took

    @property
    def bar(self) -> int | None:
        """The length of the row's bar in steps; None where no duration is known."""
        return None if self.took is None else bar_of(self.took)

    @property
    def idle_bar(self) -> int | None:
        """The length of the bar of the idle time before the row in steps; None without idle time."""
        return None if self.row.idle is None else bar_of(self.row.idle.total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelinePage:
    """A page of the timeline. `earlier` is the cursor of the previous page, None at the beginning."""

    rows: tuple[ShownRow, ...]
    earlier: int | None
    last: int

    @property
    def bars(self) -> bool:
        """True if a row has a bar."""
        return any(one.bar is not None or one.idle_bar is not None for one in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineChanges:
    """The changes of a timeline after a sequence number: new rows and changed rows, up to `seq`."""

    new: tuple[ShownRow, ...]
    changed: tuple[ShownRow, ...]
    seq: int
    more: bool


def decode_trace_event(event: Event) -> EventLabel:
    """Decode an event for a page."""
    return EventLabel(event.seq, event.at, event.kind, event.actor, orjson.loads(bytes(event.body)))


def all_told(events: "QuerySet[Event]") -> list[EventLabel]:
    """Decode events for a page, without their hashes: a page of 200 rows reads 600 events."""
    rows = events.values_list("seq", "at", "kind", "actor", "body")
    return [
        EventLabel(seq, at, kind, actor, orjson.loads(bytes(body))) for seq, at, kind, actor, body in rows
    ]


def load_event_range(run_id: UUID, low: int, high: int) -> list[EventLabel]:
    """Return the events after `low` up to `high`, in order."""
    return all_told(Event.objects.filter(run_id=run_id, seq__gt=low, seq__lte=high).order_by("seq"))


def load_timeline_page(run_id: UUID, newest: int, before: int | None = None) -> TimelinePage:
    """Return the rows that begin in the last 200 events up to `before`, or to the newest."""
    high = newest if before is None else max(1, min(before, newest))
    low = max(0, high - A_PAGE)
    rows = fold_events(load_event_range(run_id, low - MARGIN, min(newest, high + MARGIN)))
    shown = with_names(row for row in rows if low < row.seq <= high)
    return TimelinePage(rows=shown, earlier=low or None, last=newest)


def load_unfolded_timeline_page(run_id: UUID, newest: int, before: int | None = None) -> TimelinePage:
    """Return the last 200 events, each as a row of its own."""
    high = newest if before is None else max(1, min(before, newest))
    low = max(0, high - A_PAGE)
    return TimelinePage(
        rows=build_unfolded_rows(load_event_range(run_id, low, high)), earlier=low or None, last=newest
    )


def load_timeline_changes(run_id: UUID, after: int, newest: int) -> TimelineChanges:
    """Return the changes of the timeline by the events after `after`, at most 200 events at once."""
    seq = min(newest, after + A_PAGE)
    rows = [row for row in fold_events(load_event_range(run_id, after - MARGIN, seq)) if row.last > after]
    shown = with_names(rows)
    return TimelineChanges(
        new=tuple(one for one in shown if one.row.seq > after),
        changed=tuple(one for one in shown if one.row.seq <= after),
        seq=seq,
        more=seq < newest,
    )


def search_timeline(
    run_id: UUID, newest: int, *, show: str, text: str, before: int | None = None
) -> TimelinePage:
    """Return the newest rows of one category (SHOWS) that contain `text`, at most a hundred."""
    events = Event.objects.filter(run_id=run_id, seq__lte=newest if before is None else before)
    if show in FOLDED and not text:
        held = all_told(events.filter(kind__in=FOLDED[show]).order_by("-seq")[: 8 * FOUND])[::-1]
        rows = [row for row in fold_events(held) if row.voice is not Voice.MONEY][-FOUND:]
        earlier = rows[0].seq - 1 if rows and len(held) == 8 * FOUND else None
        return TimelinePage(rows=with_names(rows), earlier=earlier, last=newest)
    events = events.filter(_build_category_filter(show)) if show != "all" else events
    if text:
        mentions = RawSQL(MENTIONS, [_list_mention_patterns(run_id, text[:LONGEST])], BooleanField())  # noqa: S611 - bound
        events = events.filter(mentions)
    held = all_told(events.order_by("-seq")[: FOUND + 1])[::-1]
    more, spoken = len(held) > FOUND, held[-FOUND:]
    if show == "problems":
        spoken = [one for one in spoken if mood_of(one) is Mood.PROBLEM]
    return TimelinePage(rows=build_unfolded_rows(spoken), earlier=held[0].seq if more else None, last=newest)


def _build_category_filter(show: str) -> Q:
    kinds = {"problems": (*_BAD, *JUDGED), "money": (*_MONEY, "reservation_refused"), **FOLDED}
    return Q(kind__in=kinds[show])


def _list_mention_patterns(run_id: UUID, text: str) -> list[str]:
    """Return the patterns of events that mention `text` itself, or content that contains it."""
    cursor = raw_cursor()
    cursor.execute(HOLDING, (run_id, text.encode(), HITS))
    plain = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return [f"%{plain}%", *(f"%{digest}%" for (digest,) in cursor.fetchall())]


def row_at(run_id: UUID, seq: int) -> Row | None:
    """Return the row that an event belongs to; an event without a row becomes a row of its own."""
    near = load_event_range(run_id, seq - MARGIN, seq + MARGIN)
    rows = [row for row in fold_events(near) if any(one.seq == seq for one in row.events)]
    if rows:
        return rows[0]
    return next((one.row for one in build_unfolded_rows([one for one in near if one.seq == seq])), None)


def build_unfolded_rows(events: Iterable[EventLabel]) -> tuple[ShownRow, ...]:
    """Return each event as a row of its own."""
    return with_names(_build_unfolded_row(one) for one in events)


def _build_unfolded_row(one: EventLabel) -> Row:
    said = said_of(one)
    return Row(
        seq=one.seq, last=one.seq, at=one.at, until=one.at, voice=said.voice, mood=said.mood,
        words=said.words, name="", word="", detail=said.detail, attempts=0, tokens_in=None, tokens_out=None,
        cost=None, fact="",
        request=str(one.said.get("request", "")) if one.kind.startswith("approval") else "", events=(one,),
    )  # fmt: skip


def with_names(rows: Iterable[Row]) -> tuple[ShownRow, ...]:
    """Return rows with the names of the people in them."""
    held = list(rows)
    by = {row.seq: _collect_person_ids(row.events) for row in held}
    names = names_of(person for people in by.values() for person in people)
    said = {seq: ", ".join(names[one] for one in people if one in names) for seq, people in by.items()}
    return tuple(ShownRow(row=row, who=said[row.seq]) for row in held)


def _collect_person_ids(events: Sequence[EventLabel]) -> tuple[UUID, ...]:
    said = (str(one.said.get("by") or one.said.get("principal") or "") for one in events)
    ids = (uuid_or_none(text) for text in said if text)
    return tuple(dict.fromkeys(found for found in ids if found is not None))
