"""The content of a run, verbatim: messages, opened rows, facts, the ledger (R-UI-3, R-BUDGET-3).

Call it in the tenant's context.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import orjson

from budgets.core.entry import read_amounts
from budgets.models import Entry
from orchestrator.console.queries.timeline import decode_trace_event
from orchestrator.core.approval.change_requests import STATUS
from orchestrator.core.domain.run_state import Fact, RunState
from orchestrator.core.readmodel.timeline import EventLabel
from tenancy.db.tenant_context import raw_cursor
from traces.models import Event
from traces.queries import load_payloads

MESSAGES: Final = 40
ENTRIES: Final = 100
FACTS: Final = 50
LARGEST: Final = 64_000
SPOKEN: Final = (
    "model_called", "model_replied", "model_failed", "call_requested", "call_attempted", "call_observed",
    "call_not_run", "question_answered",
)  # fmt: skip
UTTERED: Final = tuple(kind for kind in SPOKEN if kind not in ("call_requested", "call_attempted"))
DIGEST = re.compile(r"[0-9a-f]{64}")
# Digests of something other than stored content.
NOT_CONTENT = frozenset(
    {"argument_digest", "packet_digest", "decision_digest", "action_digest", "tool_version", "graph",
     "manifest", "boundary", "content_digest", "idempotency_key", "digest"}
)  # fmt: skip
# The mark that the prompt builder writes on an untrusted fact.
UNTRUSTED: Final = " (untrusted): {"
SUMS = """
SELECT count(*), coalesce(sum((amounts::jsonb->'used'->>'cost_usd')::numeric), 0),
       coalesce(sum((amounts::jsonb->'reserved'->>'cost_usd')::numeric), 0)
  FROM budgets_entry WHERE run_id = %s AND month_id IS NULL"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A piece of content under its field's name.

    `value` is set where the content is JSON, `text` otherwise. `cut` is the number of bytes left out;
    `erased`: the content was erased.
    """

    name: str
    text: str = ""
    value: Any = None
    is_json: bool = False
    cut: int = 0
    erased: bool = False


def contents_of(run_id: UUID, events: Iterable[EventLabel]) -> dict[int, tuple[Content, ...]]:
    """Return the content that events refer to, by the event's number."""
    named = {one.seq: _list_content_digests(one.said) for one in events}
    held = load_payloads(run_id, {digest for pairs in named.values() for _, digest in pairs})
    return {
        seq: tuple(_build_content(name, held.get(digest)) for name, digest in pairs)
        for seq, pairs in named.items()
    }


def _list_content_digests(said: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, value)
        for name, value in said.items()
        if isinstance(value, str) and name not in NOT_CONTENT and DIGEST.fullmatch(value)
    ]


def _build_content(name: str, body: bytes | None) -> Content:
    if body is None:
        return Content(name=name, erased=True)
    if len(body) <= LARGEST:
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError:
            pass
        else:
            if isinstance(value, dict | list):
                return Content(name=name, value=value, is_json=True)
    shown = body[:LARGEST].decode("utf-8", "replace")
    return Content(name=name, text=shown, cut=max(0, len(body) - LARGEST))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedCall:
    """A call as a model requested it."""

    tool: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message.

    `voice` is system, agent, tool or person; `who` is the tool, role or person; `seq` is its event's
    number, under which its row opens; `quotes`: the message quotes untrusted content.
    """

    seq: int
    at: datetime
    voice: str
    who: str
    text: str
    asked: tuple[RequestedCall, ...] = ()
    erased: bool = False
    quotes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A page of messages, oldest first; `earlier` is where the previous page begins."""

    messages: tuple[Message, ...]
    earlier: int | None


def load_conversation(run_id: UUID, before: int | None = None) -> Conversation:
    """Return the newest messages up to `before`."""
    events = Event.objects.filter(run_id=run_id, kind__in=SPOKEN)
    if before is not None:
        events = events.filter(seq__lte=before)
    held = [decode_trace_event(event) for event in events.order_by("-seq")[: 3 * MESSAGES]][::-1]
    whole = len(held) < 3 * MESSAGES
    spoken = [one for one in held if one.kind in UTTERED][-MESSAGES:]
    messages = _build_messages(run_id, spoken, [one for one in held if one.kind == "call_requested"])
    at_start = whole and len(messages) < MESSAGES
    return Conversation(messages=messages, earlier=None if at_start or not spoken else spoken[0].seq - 1)


def said_after(run_id: UUID, after: int, newest: int) -> tuple[tuple[Message, ...], int, bool]:
    """Return at most forty messages after an event, the last event covered, and whether there are more."""
    events = Event.objects.filter(run_id=run_id, seq__lte=newest)
    held = list(events.filter(kind__in=UTTERED, seq__gt=after).order_by("seq")[: MESSAGES + 1])
    more, spoken = len(held) > MESSAGES, [decode_trace_event(event) for event in held[:MESSAGES]]
    seq = spoken[-1].seq if more else newest
    asked = events.filter(kind="call_requested", seq__lte=seq).order_by("-seq")[: 3 * MESSAGES]
    return _build_messages(run_id, spoken, map(decode_trace_event, asked) if spoken else ()), seq, more


def _build_messages(
    run_id: UUID, spoken: list[EventLabel], asked: Iterable[EventLabel]
) -> tuple[Message, ...]:
    tools = {one.said["call"]: one.said["tool"] for one in asked}
    bodies = load_payloads(
        run_id, {digest for one in spoken for _, digest in _list_content_digests(one.said)}
    )
    return tuple(_build_message(one, bodies, tools) for one in spoken)


def _build_message(one: EventLabel, bodies: Mapping[str, bytes], tools: Mapping[str, str]) -> Message:
    said = one.said
    if one.kind == "model_called":
        return _build_instruction_message(one, bodies.get(said["request"]))
    if one.kind == "model_replied":
        return _build_reply_message(one, bodies.get(said["reply"]))
    if one.kind == "model_failed":
        body = bodies.get(said.get("detail") or "")
        text = f"No reply: {said['error']}. {_decode_text(body)}".strip()
        return Message(seq=one.seq, at=one.at, voice="system", who="model", text=text)
    if one.kind == "question_answered":
        body = bodies.get(said["answer"])
        return Message(
            seq=one.seq, at=one.at, voice="person", who="answer", text=_decode_text(body), erased=body is None
        )
    digest = said.get("observation") or said.get("result") or ""
    body = bodies.get(digest)
    who = tools.get(said.get("call", ""), "tool")
    if one.kind == "call_not_run" and said.get("status") == STATUS:
        return _sent_back(one, body, who)
    voice = "tool" if one.kind == "call_observed" else "system"
    return Message(
        seq=one.seq,
        at=one.at,
        voice=voice,
        who=who,
        text=_decode_text(body),
        erased=bool(digest) and body is None,
    )


def _sent_back(one: EventLabel, body: bytes | None, tool: str) -> Message:
    """Build the message of a person who requested changes to the agent's call."""
    words = "" if body is None else str(orjson.loads(body).get("words", ""))
    return Message(
        seq=one.seq, at=one.at, voice="person", who=f"sends {tool} back", text=words, erased=body is None
    )


def _build_instruction_message(one: EventLabel, body: bytes | None) -> Message:
    """Build the message of the prompt: the system text, and the user messages."""
    parts: list[str] = []
    if body is not None:
        request = orjson.loads(body)
        parts = [str(request.get("system", ""))]
        parts += [str(m.get("text", "")) for m in request.get("messages", []) if m.get("role") == "user"]
    who = f"{one.said.get('role', '')} · {one.said.get('profile', '')}"
    text = "\n\n".join(parts)
    return Message(
        seq=one.seq, at=one.at, voice="system", who=who, text=text, erased=body is None,
        quotes=UNTRUSTED in text,
    )  # fmt: skip


def _build_reply_message(one: EventLabel, body: bytes | None) -> Message:
    """Build the message of a model's reply: its text, and the calls that it requested."""
    if body is None:
        return Message(seq=one.seq, at=one.at, voice="agent", who="model", text="", erased=True)
    reply = orjson.loads(body)
    asked = tuple(
        RequestedCall(tool=str(call.get("name", "")), arguments=str(call.get("arguments", "")))
        for call in reply.get("calls", [])
    )
    text = str(reply.get("text") or reply.get("refusal") or "")
    return Message(
        seq=one.seq, at=one.at, voice="agent", who=str(reply.get("model", "")), text=text, asked=asked
    )


def _decode_text(body: bytes | None) -> str:
    return "" if body is None else body[:LARGEST].decode("utf-8", "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFact:
    """A fact with the event that committed it, which leads to its evidence."""

    name: str
    fact: Fact
    values: dict[str, Any]
    seq: int | None


def facts_of(run_id: UUID, state: RunState, after: int = 0) -> tuple[ShownFact, ...]:
    """Return the run's facts in commit order; with `after`, those whose event came later."""
    events = Event.objects.filter(run_id=run_id, kind="fact_committed", seq__gt=after).order_by("-seq")
    seqs = {}
    for seq, body in events.values_list("seq", "body")[:2_000]:
        said = orjson.loads(bytes(body))
        seqs[said["fact"], said["version"]] = seq
    return tuple(
        ShownFact(name=name, fact=fact, values=dict(fact.values), seq=seqs.get((name, fact.version)))
        for name, fact in state.facts_in_order()
        if not after or (name, fact.version) in seqs
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsPage:
    """A page of a run's facts, oldest first; `earlier` counts those before it, None without any."""

    facts: tuple[ShownFact, ...]
    earlier: int | None


def load_known_facts(run_id: UUID, state: RunState, before: int | None = None, fact: str = "") -> FactsPage:
    """Return the newest facts, those up to the `before`th, or those up to `fact`."""
    found = facts_of(run_id, state)
    last = len(found) if before is None else min(before, len(found))
    places = [place for place, one in enumerate(found, 1) if one.name == fact]
    last = places[0] if places else last
    first = max(0, last - FACTS)
    return FactsPage(facts=found[first:last], earlier=first or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancedEntry:
    """One entry with the run's balance after it. Amounts are US$; `other` are the rest by dimension."""

    entry: Entry
    used: Decimal
    reserved: Decimal
    other: tuple[tuple[str, str], ...]
    balance_used: Decimal
    balance_reserved: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The newest entries of a run, newest first, and the sums of all of them."""

    entries: tuple[BalancedEntry, ...]
    count: int
    used: Decimal
    reserved: Decimal


def ledger_of(run_id: UUID, since: datetime | None = None) -> Ledger:
    """Return the run's ledger, with the entries from `since` on.

    The running balance is counted back from the sum of every entry.
    """
    cursor = raw_cursor()
    cursor.execute(SUMS, (run_id,))
    row = cursor.fetchone()
    count, used, reserved = row if row is not None else (0, Decimal(0), Decimal(0))
    entries = Entry.objects.filter(run_id=run_id, month_id=None)
    # An id is generated by a process whose clock may be ahead; the time is the database's.
    newest = (entries if since is None else entries.filter(at__gte=since)).order_by("-at", "-id")[:ENTRIES]
    balance_used, balance_reserved = used, reserved
    booked = []
    for entry in newest:
        one = _build_ledger_row(entry, balance_used, balance_reserved)
        booked.append(one)
        balance_used, balance_reserved = balance_used - one.used, balance_reserved - one.reserved
    return Ledger(entries=tuple(booked), count=count, used=used, reserved=reserved)


def _build_ledger_row(entry: Entry, balance_used: Decimal, balance_reserved: Decimal) -> BalancedEntry:
    used, reserved, limit = (
        {str(k): v for k, v in part.canonical().items()} for part in read_amounts(entry.amounts)
    )
    shown = used or reserved or limit
    return BalancedEntry(
        entry=entry,
        used=Decimal(used.get("cost_usd", 0)),
        reserved=Decimal(reserved.get("cost_usd", 0)),
        other=tuple((name, str(amount)) for name, amount in sorted(shown.items()) if name != "cost_usd"),
        balance_used=balance_used,
        balance_reserved=balance_reserved,
    )
