"""The two hash chains of a run (docs/trace-format.md): records, one per transition, and events."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import UUID

from traces.core.canonical import (
    canonical_model,
    canonical_typed,
    encode_canonical,
    format_canonical_time,
    text_of,
)
from traces.core.events.trace_events import TraceEventBody

RECORD_FORMAT = b"interlock record 1\0"
EVENT_FORMAT = b"interlock event 1\0"
START = bytes(32)


# Named tuples: a dozen are created in every commit, and a frozen dataclass takes three times as long.
class TraceEntry(NamedTuple):
    """An event that is not chained yet: its phase, its actor and its content."""

    phase: int
    actor: str
    body: TraceEventBody


class UnchainedTransition(NamedTuple):
    """A transition that is not chained yet."""

    source: str
    outcome: str
    guard: str | None
    target: str
    phase: int
    patch: Mapping[str, Any]
    said: tuple[TraceEntry, ...]
    effects: tuple[str, ...]


class Head(NamedTuple):
    """The end of a run's two chains."""

    run: UUID
    record_number: int
    record_hash: bytes
    event_seq: int
    event_hash: bytes

    @classmethod
    def start(cls, run: UUID) -> "Head":
        """Return the head of a run without records."""
        return cls(run=run, record_number=-1, record_hash=START, event_seq=0, event_hash=START)


class EventRow(NamedTuple):
    """An event as it is stored; `body` is the canonical form of its content."""

    run: UUID
    seq: int
    at: datetime
    phase: int
    kind: str
    actor: str
    body: bytes
    previous: bytes
    hash: bytes


class RecordRow(NamedTuple):
    """A record as it is stored; `body` is the canonical form that was hashed."""

    run: UUID
    number: int
    at: datetime
    phase: int
    source: str
    outcome: str
    target: str
    body: bytes
    previous: bytes
    hash: bytes


class LinkedRows(NamedTuple):
    """The rows that a link adds, and the head after it."""

    head: Head
    records: tuple[RecordRow, ...]
    events: tuple[EventRow, ...]


def link_transitions(
    head: Head,
    moves: Sequence[UnchainedTransition],
    *,
    core_version: int,
    event_digest: str,
    headroom: Mapping[str, Any] | None,
    binds: Mapping[str, str],
    at: datetime,
) -> LinkedRows:
    """Chain moves onto a head.

    The machine's input (`event_digest`, `headroom`) is stored in the first record, the digests of everything
    else that the commit wrote (`binds`) in the last.
    """
    time, last, run = format_canonical_time(at), len(moves) - 1, text_of(head.run)
    fed = dict(headroom) if headroom else None
    encode_canonical(fed)  # plain values without a type: a float is rejected here; everything else is typed
    records: list[RecordRow] = []
    events: list[EventRow] = []
    number, before, seq, said_before = head.record_number, head.record_hash, head.event_seq, head.event_hash
    for index, move in enumerate(moves):
        said: list[str] = []
        for word in move.said:
            seq += 1
            event = _build_event_row(head.run, run, seq, word, at, time, said_before)
            events.append(event)
            said_before = event.hash
            said.append(said_before.hex())
        number += 1
        body = canonical_typed({
            "run": run, "number": number, "core": core_version, "at": time,
            "event": event_digest if index == 0 else "", "headroom": fed if index == 0 else None,
            "source": move.source, "outcome": move.outcome, "guard": move.guard, "target": move.target,
            "phase": move.phase, "patch": move.patch, "said": said, "effects": move.effects,
            "binds": binds if index == last else {},
        })  # fmt: skip
        hashed = record_hash(before, body)
        records.append(
            RecordRow(
                head.run, number, at, move.phase, move.source, move.outcome, move.target, body, before, hashed
            )
        )
        before = hashed
    after = Head(
        run=head.run, record_number=number, record_hash=before, event_seq=seq, event_hash=said_before
    )
    return LinkedRows(head=after, records=tuple(records), events=tuple(events))


def record_hash(previous: bytes, body: bytes) -> bytes:
    """Return the hash of a record: format, the previous record's hash, the canonical record."""
    return sha256(RECORD_FORMAT + previous + body).digest()


def event_hash(previous: bytes, content: bytes) -> bytes:
    """Return the hash of an event: format, the previous event's hash, the envelope."""
    return sha256(EVENT_FORMAT + previous + content).digest()


def build_event_envelope(
    *, run: str, seq: int, time: str, phase: int, kind: str, actor: str, body: bytes
) -> bytes:
    """Build the hashed part of an event without the previous hash: every column, then the stored body."""
    columns = {"run": run, "seq": seq, "at": time, "phase": phase, "kind": kind, "actor": actor}
    return canonical_typed(columns) + b"\0" + body


def hash_of(event: EventRow, previous: bytes) -> bytes:
    """Return the hash of an event's columns and body after `previous`."""
    content = build_event_envelope(
        run=str(event.run),
        seq=event.seq,
        time=format_canonical_time(event.at),
        phase=event.phase,
        kind=event.kind,
        actor=event.actor,
        body=event.body,
    )
    return event_hash(previous, content)


def _build_event_row(
    run_id: UUID, run: str, seq: int, word: TraceEntry, at: datetime, time: str, previous: bytes
) -> EventRow:
    body = canonical_model(word.body)
    kind: str = word.body.kind  # type: ignore[attr-defined]  # every concrete body names its kind
    content = build_event_envelope(
        run=run, seq=seq, time=time, phase=word.phase, kind=kind, actor=word.actor, body=body
    )
    hashed = event_hash(previous, content)
    return EventRow(run_id, seq, at, word.phase, kind, word.actor, body, previous, hashed)
