"""Folding: a call, its attempts, its checks and its result become one row, placed at the request.

The same events always give the same row. A later event of the row gives an updated row with the same name.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise

from orchestrator.core.approval.change_requests import STATUS
from orchestrator.core.readmodel.reason_texts import in_words, left_in_words
from orchestrator.core.readmodel.timeline.event_labels import (
    KINDS,
    UNKNOWN,
    EventLabel,
    Mood,
    Voice,
    mood_of,
    said_of,
)

IDLE = timedelta(seconds=60)
OPENING = {"call_requested": "call", "model_called": "effect", "approval_requested": "request"}
JOINING = ("request", "call", "effect")
# The newest of these events decides the text of a call's row.
VERDICTS = frozenset(
    {
        "call_in_doubt", "failure_committed", "call_not_run", "fact_committed", "call_verified",
        "call_observed", "call_attempted", "call_checked", "reconciled", "deed_left", "deed_undone",
    }
)  # fmt: skip

DECIDED = {
    "approve": "approved", "edit": "approved with changes", "reject": "rejected", "answer": "answered",
    "revise": "sent back",
    "extend": "given more", "happened": "it happened", "not_happened": "it did not happen",
    "cancel": "run cancelled",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the timeline.

    `seq` identifies the row and is the number of its first event; `last` is that of its newest event. `name`,
    `word` and `detail` may hold text from outside. `idle` is the time without events before the row, and
    `idle_why` the event before that time. `waited` is the time that a call waited for people within the row.
    """

    seq: int
    last: int
    at: datetime
    until: datetime
    voice: Voice
    mood: Mood
    words: str
    name: str
    word: str
    detail: str
    attempts: int
    tokens_in: int | None
    tokens_out: int | None
    cost: Decimal | None
    fact: str
    request: str
    events: tuple[EventLabel, ...]
    idle: timedelta | None = None
    idle_why: str = ""
    waited: timedelta = timedelta(0)

    @property
    def took(self) -> float:
        """Seconds from the first event to the newest, without the time that a call waited for people."""
        return (self.until - self.at - self.waited).total_seconds()


@dataclass(slots=True)
class _OpenRow:
    events: list[EventLabel]
    idle: timedelta | None = None
    idle_why: str = ""


@dataclass(slots=True)
class _EventFolder:
    rows: list[_OpenRow] = field(default_factory=list)
    known: dict[str, _OpenRow] = field(default_factory=dict)
    model: _OpenRow | None = None
    before: EventLabel | None = None
    gap: timedelta = timedelta(0)
    gap_why: str = ""

    def take(self, told: EventLabel) -> None:
        """Add an event to its row, if it has one."""
        if self.before is not None and told.at - self.before.at > self.gap:
            self.gap, self.gap_why = told.at - self.before.at, self.before.kind
        self.before = told
        row = self._find_joined_row(told)
        if row is None and (told.kind in OPENING or _is_standalone_event(told)):
            row = self._open_row()
        if row is None:
            return
        row.events.append(told)
        if told.kind == "model_called":
            self.model = row
        for name in ("effect", OPENING.get(told.kind, "")):
            if told.said.get(name):
                self.known[f"{name}:{told.said[name]}"] = row

    def _find_joined_row(self, told: EventLabel) -> _OpenRow | None:
        if told.kind == "model_called" and told.said.get("attempt", 1) > 1:
            return self.model
        if told.kind in OPENING:
            return None
        keys = (f"{name}:{told.said[name]}" for name in JOINING if told.said.get(name))
        return next((self.known[key] for key in keys if key in self.known), None)

    def _open_row(self) -> _OpenRow:
        row = _OpenRow([])
        if self.gap >= IDLE:
            row.idle, row.idle_why = self.gap, self.gap_why
        self.gap, self.gap_why = timedelta(0), ""
        self.rows.append(row)
        return row


def fold_events(events: Iterable[EventLabel]) -> tuple[Row, ...]:
    """Return the rows of a section of a trace, in order; events that only note a phase have no row.

    Events of a row whose first event is not in the section are left out.
    """
    folding = _EventFolder()
    for told in events:
        folding.take(told)
    return tuple(_build_row(found) for found in folding.rows)


def _is_standalone_event(told: EventLabel) -> bool:
    if told.kind == "breaker_tripped":
        return mood_of(told) is Mood.PROBLEM
    if told.kind == "policy_decided":
        return mood_of(told) is Mood.PROBLEM
    return KINDS.get(told.kind, UNKNOWN).alone


def _build_row(found: _OpenRow) -> Row:
    first = found.events[0]
    told = {
        "call_requested": _describe_tool_call,
        "model_called": _describe_model_call,
        "approval_requested": _describe_approval_request,
    }
    words, name, word, detail, mood = told.get(first.kind, _describe_single_event)(found.events)
    settled = [event.said.get("amounts", {}) for event in found.events if event.kind == "budget_settled"]
    return Row(
        seq=first.seq,
        last=found.events[-1].seq,
        at=first.at,
        until=found.events[-1].at,
        voice=KINDS.get(first.kind, UNKNOWN).voice,
        mood=mood,
        words=words,
        name=name,
        word=word,
        detail=detail,
        attempts=_count_attempts(found.events),
        tokens_in=_sum_tokens(settled, "input_tokens"),
        tokens_out=_sum_tokens(settled, "output_tokens"),
        cost=_sum_cost(settled),
        fact=_pick_latest_value(found.events, "fact"),
        request=_pick_latest_value(found.events, "request") if first.kind == "approval_requested" else "",
        events=tuple(found.events),
        idle=found.idle,
        idle_why=found.idle_why,
        waited=_measure_human_wait(found.events),
    )


def _measure_human_wait(events: list[EventLabel]) -> timedelta:
    """Return the time that a call waited for people: from each request to the next event."""
    if events[0].kind != "call_requested":
        return timedelta(0)
    steps = pairwise(events)
    return sum((after.at - before.at for before, after in steps if _asks_people(before)), timedelta(0))


def _asks_people(told: EventLabel) -> bool:
    asked = told.kind == "call_checked" and told.said.get("decision") == "approval_required"
    return asked or told.kind == "call_in_doubt"


Telling = tuple[str, str, str, str, Mood]


def _describe_tool_call(events: list[EventLabel]) -> Telling:
    """Describe a tool call by its result so far."""
    name = str(events[0].said.get("tool", ""))
    decisive = next((event for event in reversed(events) if event.kind in VERDICTS), None)
    if decisive is None:
        return "Tool call", name, "asked for", "", Mood.BUSY
    said = decisive.said
    if decisive.kind == "fact_committed":
        return "Tool call", name, "verified", f"fact {said['fact']}", Mood.DONE
    if decisive.kind in ("deed_undone", "deed_left"):
        return "Tool call", name, *_describe_compensation(decisive)
    if decisive.kind == "call_attempted":
        return "Tool call", name, "sent", "", Mood.BUSY
    if decisive.kind == "call_checked":
        return "Tool call", name, *_describe_call_check(decisive)
    words = {"call_in_doubt": "in doubt", "failure_committed": _describe_failure(events)}
    word = words.get(decisive.kind) or str(said.get("verdict") or said.get("status", ""))
    detail = str(said.get("error") or said.get("reason") or said.get("detail") or "")
    if decisive.kind == "call_not_run":
        word, detail = _not_run(word, detail)
    mood = mood_of(decisive)
    return "Tool call", name, word, detail, Mood.BUSY if decisive.kind == "call_observed" else mood


def _describe_failure(events: list[EventLabel]) -> str:
    """Describe the failure of a call, including that its change may have been made."""
    told = next((one.kind for one in reversed(events) if one.kind.startswith("effect_")), "")
    return "failed, and may have happened" if told == "effect_left_open" else "failed"


def _not_run(status: str, detail: str) -> tuple[str, str]:
    """Describe a call that has a result without having been made: sent back for revision, or not allowed."""
    if status == STATUS:
        return "sent back", detail
    return "not run", f"{status}: {detail}" if detail else status


def _describe_compensation(decisive: EventLabel) -> tuple[str, str, Mood]:
    """Describe whether a change was undone in a run without a result (R-TOOL-15)."""
    if decisive.kind == "deed_undone":
        return "undone", str(decisive.said.get("wanted", "")), Mood.NOTE
    return "left for people", left_in_words(str(decisive.said.get("why", ""))), Mood.PROBLEM


def _describe_call_check(decisive: EventLabel) -> tuple[str, str, Mood]:
    decision, rule = decisive.said.get("decision"), str(decisive.said.get("rule", ""))
    if decision == "deny":
        return "denied", in_words(rule), Mood.PROBLEM
    if decision == "approval_required":
        return "needs approval", in_words(rule), Mood.WAIT
    return "checked", "", Mood.BUSY


def _describe_model_call(events: list[EventLabel]) -> Telling:
    """Describe a model call: its reply, its failure, or that it is in progress."""
    first = events[0].said
    name = str(first.get("profile", ""))
    words = f"Model call · {first.get('role', '')}"
    last = next(e for e in reversed(events) if e.kind in ("model_replied", "model_failed", "model_called"))
    if last.kind == "model_called":
        return words, name, "thinking", "", Mood.BUSY
    if last.kind == "model_failed":
        return words, name, "failed", str(last.said.get("error", "")), Mood.PROBLEM
    calls = int(last.said.get("calls", 0))
    shape = str(last.said.get("shape", ""))
    asked = f"asks for {calls} call{'s' if calls != 1 else ''}"
    word = asked if shape == "requests" else {"answer": "answers", "refusal": "refuses"}.get(shape, shape)
    return words, name, word, "", Mood.PROBLEM if shape in ("refusal", "empty") else Mood.DONE


def _describe_approval_request(events: list[EventLabel]) -> Telling:
    """Describe a request to people: open, or how it ended."""
    first = events[0].said
    name = str(first.get("queue", ""))
    kinds = {"clarification": "Question to people", "question": "Question to people",
             "reconciliation": "Did it happen?", "budget": "More budget asked for"}  # fmt: skip
    words = kinds.get(str(first.get("request_kind", "")), "Approval asked for")
    ends = ("approval_decided", "approval_expired", "approval_withdrawn", "question_answered")
    last = next((event for event in reversed(events) if event.kind in ends), None)
    if last is None:
        return words, name, "open", "", Mood.WAIT
    if last.kind == "approval_decided":
        said_word, role = str(last.said.get("decision", "")), str(last.said.get("role", ""))
        return words, name, DECIDED.get(said_word, said_word), f"as {role}" if role else "", mood_of(last)
    said = said_of(last)
    return words, name, said.words.lower(), str(last.said.get("reason", "")), said.mood


def _describe_single_event(events: list[EventLabel]) -> Telling:
    """Describe an event that is a row of its own."""
    said = said_of(events[0])
    return said.words, "", "", said.detail, said.mood


def _count_attempts(events: list[EventLabel]) -> int:
    """Count the attempts; reading back a change is not an attempt."""
    tool = events[0].said.get("tool")
    sent = [e for e in events if e.kind == "call_attempted" and e.said.get("tool") == tool]
    return len(sent) + len([e for e in events if e.kind == "model_called"])


def _iter_settled_amounts(settled: Iterable[dict[str, str]], name: str) -> Iterator[Decimal]:
    return (Decimal(amounts[name]) for amounts in settled if name in amounts)


def _sum_tokens(settled: list[dict[str, str]], name: str) -> int | None:
    found = list(_iter_settled_amounts(settled, name))
    return int(sum(found)) if found else None


def _sum_cost(settled: list[dict[str, str]]) -> Decimal | None:
    found = list(_iter_settled_amounts(settled, "cost_usd"))
    return sum(found, Decimal(0)) if found else None


def _pick_latest_value(events: list[EventLabel], name: str) -> str:
    return next((str(event.said[name]) for event in reversed(events) if event.said.get(name)), "")
