"""Verification that a run's trace is what was written: every column, link and payload (R-TRACE-3, X2).

No database is needed: `trace verify` passes rows, the verifier of an export passes what it read from a file.
If a hash does not match, the altered column is found by inserting known values until the hash matches.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from tenancy.core.timestamps import read_moment
from traces.core.canonical import compute_digest, encode_canonical, format_canonical_time, payload_digest
from traces.core.errors import NotCanonical
from traces.core.events.phases import Phase
from traces.core.integrity.chain import START, EventRow, Head, RecordRow, hash_of, record_hash
from traces.core.integrity.record_validation import is_applicable_patch, is_record
from traces.core.payload_fields import is_digest, named_by
from traces.core.state_patch import Plain, apply_patch

GONE = "it is missing: deleted, or its run or tenant was altered"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationFault:
    """One difference from what was written.

    `where` names the table (and the key), `number` the place in its order, `column` the altered column.
    """

    where: str
    number: int
    column: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.where} {self.number}, {self.column}: {self.sentence}"


class SnapshotRow(NamedTuple):
    """A snapshot as it is stored."""

    number: int
    state: bytes
    digest: bytes


class PayloadRow(NamedTuple):
    """Content as it is stored; without a body if it was erased."""

    digest: bytes
    body: bytes | None
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """All stored rows of one run. `payloads` is read once; `salts` has one entry, None once erased."""

    run: UUID
    salts: tuple[bytes | None, ...]
    events: Sequence[EventRow]
    records: Sequence[RecordRow]
    snapshots: Sequence[SnapshotRow]
    payloads: Iterable[PayloadRow]


def up_to(trace: Trace, head: Head) -> Trace:
    """Return the trace as of the run's `head`: the run may have continued while the trace was read."""
    return replace(
        trace,
        events=[row for row in trace.events if row.seq <= head.event_seq],
        records=[row for row in trace.records if row.number <= head.record_number],
        snapshots=[row for row in trace.snapshots if row.number <= head.record_number],
    )


@dataclass(slots=True)
class _Read:
    """The content of the records that refers to other rows."""

    told: list[tuple[str, str]] = field(default_factory=list)  # event hash, time of its record
    patches: dict[int, Plain] = field(default_factory=dict)
    bound: dict[int, str] = field(default_factory=dict)  # a snapshot's digest by its number
    named: set[str] = field(default_factory=set)


def faults_of(trace: Trace, expected: Head | None = None) -> list[VerificationFault]:
    """Return every fault of a trace, the first bad row first; empty if it is intact.

    `expected` is the head that the run itself states; without it, a missing end cannot be detected.
    """
    read = _Read()
    faults = [*check_records(trace.records, expected, read), *_cut_records(trace.records, expected)]
    faults += [*check_events(trace.events, read.told), *_cut_events(trace.events, expected)]
    faults += check_snapshots(trace.snapshots, read.patches, read.bound)
    bodies = [_parse_object_or_none(event.body) or {} for event in trace.events]
    for body in bodies:
        read.named.update(named_by(body))
    erased = any(body.get("kind") == "payload_erased" for body in bodies)
    faults += check_payloads(trace, read.named, erased=erased)
    return list(dict.fromkeys(faults))


def check_records(
    records: Sequence[RecordRow], expected: Head | None = None, read: _Read | None = None
) -> Iterator[VerificationFault]:
    """Yield the faults of a chain of records, in order; stop at a gap."""
    before = START
    for number, row in enumerate(records):
        if row.number != number:
            yield _make_gap_fault(
                "Record", number, "number", strays=[r for r in records if r.previous == before]
            )
            return
        after = _find_expected_hash(records, number, expected)
        computed = record_hash(before, row.body)
        if row.previous != before:
            yield _make_fault("Record", number, "previous", "it does not follow the record before it")
        content = _parse_canonical_object(row.body)
        if content is None:
            yield _make_fault("Record", number, "body", "it is not in canonical form")
        elif computed != row.hash and computed == after:
            yield _make_fault("Record", number, "hash", "it is not the hash of the record")
        elif computed not in (row.hash, after):
            yield _make_fault("Record", number, "body", "it is not what was hashed")
        yield from _verify_columns(row, content or {})
        if content is not None and is_record(content):
            _collect_content(read, number, content)
        elif content is not None:
            yield _make_fault("Record", number, "body", "it has not the shape of a record")
        before = computed if computed == after else row.hash


def _find_expected_hash(records: Sequence[RecordRow], number: int, expected: Head | None) -> bytes | None:
    """Return the hash of record `number` according to the next record, or to the run's own head."""
    if number + 1 < len(records):
        return records[number + 1].previous
    return expected.record_hash if expected is not None and expected.record_number == number else None


def _verify_columns(row: RecordRow, content: Mapping[str, Any]) -> Iterator[VerificationFault]:
    """Check that the columns, stored in addition to the hashed body for queries, agree with the body."""
    stored = {
        "run": str(row.run), "number": row.number, "at": format_canonical_time(row.at), "phase": row.phase,
        "source": row.source, "outcome": row.outcome, "target": row.target,
    }  # fmt: skip
    for column, value in stored.items():
        if content and content.get(column) != value:
            name = "run_id" if column == "run" else column
            yield _make_fault("Record", row.number, name, "the column differs from the hashed record")


def _collect_content(read: _Read | None, number: int, content: Mapping[str, Any]) -> None:
    if read is None:
        return
    read.told += [(hashed, str(content.get("at"))) for hashed in content.get("said", ())]
    read.patches[number] = content.get("patch") or {}
    if is_digest(str(content.get("event"))):
        read.named.add(content["event"])
    for name, value in (content.get("binds") or {}).items():
        kind, _, key = name.partition(":")
        if kind == "snapshot":
            read.bound[int(key)] = value


def check_events(
    events: Sequence[EventRow], told: Sequence[tuple[str, str]] = ()
) -> Iterator[VerificationFault]:
    """Yield the faults of a chain of events, in order; stop at a gap.

    `told` is the content of the records: each event's hash, and the time of its record.
    """
    before = START
    actors = sorted({event.actor for event in events} | {"interlock", "person"})
    for index, event in enumerate(events):
        if event.seq != index + 1:
            wanted = bytes.fromhex(told[index][0]) if index < len(told) else b""
            yield _make_gap_fault("Event", index + 1, "seq", strays=[e for e in events if e.hash == wanted])
            return
        if told and index >= len(told):
            yield _make_fault("Event", event.seq, "hash", "no record speaks of it")
        wanted = bytes.fromhex(told[index][0]) if index < len(told) else event.hash
        time = told[index][1] if index < len(told) else ""
        if event.previous != before:
            yield _make_fault("Event", event.seq, "previous", "it does not follow the event before it")
        if hash_of(event, before) != wanted:
            column = _find_altered_column(event, before, wanted, time, actors)
            yield _make_fault("Event", event.seq, column, "it is not what was hashed")
        elif event.hash != wanted:
            yield _make_fault("Event", event.seq, "hash", "it is not the hash of the event")
        elif (_parse_canonical_object(event.body) or {}).get("kind") != event.kind:
            yield _make_fault("Event", event.seq, "body", "it is not the canonical form of its kind")
        before = wanted
    if len(events) < len(told):
        yield _make_fault("Event", len(events) + 1, "run_id", GONE)


def _find_altered_column(
    event: EventRow, before: bytes, wanted: bytes, time: str, actors: Sequence[str]
) -> str:
    """Return the one column whose former value makes the hash match again; "body" if there is none."""
    body = _parse_object_or_none(event.body) or {}
    named = [
        value
        for name, value in sorted(body.items())
        if name in ("by", "principal") and isinstance(value, str)
    ]
    former: dict[str, Sequence[Any]] = {
        "at": _parse_times(time),
        "phase": [int(phase) for phase in Phase],
        "kind": [str(body.get("kind"))],
        "actor": [*actors, *named],
    }
    for column, values in former.items():
        for value in values:
            if hash_of(event._replace(**{column: value}), before) == wanted:
                return column
    return "body"


def _parse_times(time: str) -> list[datetime]:
    try:
        return [read_moment(time)]
    except ValueError:
        return []


def check_snapshots(
    snapshots: Sequence[SnapshotRow], patches: Mapping[int, Plain], bound: Mapping[int, str]
) -> Iterator[VerificationFault]:
    """Check that every snapshot is the previous one plus the patches between, and is bound by a record."""
    stored = {row.number: row for row in snapshots}
    plain: Plain | None = None
    lost: list[str] = []
    for number in sorted(patches.keys() | bound.keys()):
        patch = patches.get(number, {})
        if plain is not None and not is_applicable_patch(plain, patch):
            yield _make_fault("Record", number, "body", "its patch does not fit the state before it")
            plain = None
        plain = apply_patch(plain, patch) if plain is not None else None
        row = stored.get(number)
        if number in bound and row is None:
            lost.append(bound[number])
            strays = [row for row in snapshots if row.digest.hex() == bound[number]]
            yield _make_gap_fault("Snapshot", number, "number", strays=strays)
        elif number in bound and row is not None:
            yield from _verify_snapshot(row, bound[number], plain)
            plain = _parse_canonical_object(row.state) or plain
    for row in snapshots:
        if row.number not in bound and row.digest.hex() not in lost:
            yield _make_fault("Snapshot", row.number, "number", "no record speaks of it")
        elif stored[row.number] is not row:
            yield _make_fault("Snapshot", row.number, "number", "there are two of it")


def _verify_snapshot(row: SnapshotRow, bound: str, plain: Plain | None) -> Iterator[VerificationFault]:
    if compute_digest("state", row.state) != bound:
        yield _make_fault("Snapshot", row.number, "state", "it is not the state that its record bound")
    elif (
        plain is not None
        and encode_canonical({**_collect_added_fields(row.state, plain), **plain}) != row.state
    ):
        yield _make_fault("Snapshot", row.number, "state", "the patches lead to another state")
    if row.digest.hex() != bound:
        yield _make_fault("Snapshot", row.number, "digest", "it is not the digest that its record bound")


def _collect_added_fields(state: bytes, plain: Plain) -> Plain:
    """Return the empty fields that a later version added to the state of a running run."""
    now = _parse_canonical_object(state) or {}
    return {name: value for name, value in now.items() if name not in plain and not value}


def check_payloads(trace: Trace, named: Iterable[str], *, erased: bool) -> list[VerificationFault]:
    """Check that content matches its digest, and that named content exists or was erased on record."""
    if len(trace.salts) != 1:
        return [_make_fault("Salt", 0, "run_id", f"there are {len(trace.salts)} salts instead of one")]
    salt, missing, known = trace.salts[0], set(named), 0
    faults: list[VerificationFault] = []
    unfit: list[tuple[int, PayloadRow]] = []
    for known, row in enumerate(trace.payloads, 1):
        missing.discard(row.digest.hex())
        if row.body is None:
            if not erased or salt is not None:
                faults.append(
                    _make_payload_fault(known, row, "body", "it is gone, and the trace does not say so")
                )
        elif len(row.body) != row.size:
            faults.append(_make_payload_fault(known, row, "size", "it is not the body's"))
        if salt is not None and row.body is not None and payload_digest(salt, row.body) != row.digest.hex():
            unfit.append((known, row))
    if salt is None and not erased:
        faults.append(_make_fault("Salt", 0, "salt", "it was erased, and the trace does not say so"))
    if len(unfit) == known > 1:
        return [*faults, _make_fault("Salt", 0, "salt", "no content fits its digest")]
    for number, row in unfit:
        true = payload_digest(salt or b"", row.body or b"")
        column = "digest" if true in missing else "body"
        missing.discard(true)
        faults.append(_make_payload_fault(number, row, column, "content and digest do not fit"))
    return faults + [_make_fault(f"Payload {name}", 0, "run_id", GONE) for name in sorted(missing)]


def _make_payload_fault(number: int, row: PayloadRow, column: str, sentence: str) -> VerificationFault:
    return _make_fault(f"Payload {row.digest.hex()}", number, column, sentence)


def _cut_records(records: Sequence[RecordRow], expected: Head | None) -> Iterator[VerificationFault]:
    """Yield records that are missing or surplus at the end, compared to the head that the run states."""
    if expected is None:
        return
    hashes = {row.number: row.hash for row in records}
    if expected.record_number >= 0 and expected.record_number not in hashes:
        yield _make_fault("Record", expected.record_number, "run_id", GONE)
    elif hashes.get(expected.record_number, START) != expected.record_hash:
        yield _make_fault("Record", expected.record_number, "hash", "the chain does not end as the run says")
    for number in hashes:
        if number > expected.record_number:
            yield _make_fault("Record", number, "number", "the run does not claim it")


def _cut_events(events: Sequence[EventRow], expected: Head | None) -> Iterator[VerificationFault]:
    if expected is None:
        return
    hashes = {row.seq: row.hash for row in events}
    if expected.event_seq > 0 and expected.event_seq not in hashes:
        yield _make_fault("Event", expected.event_seq, "run_id", GONE)
    elif hashes.get(expected.event_seq, START) != expected.event_hash:
        yield _make_fault("Event", expected.event_seq, "hash", "the chain does not end as the run says")


def _make_gap_fault(where: str, number: int, column: str, *, strays: Sequence[Any]) -> VerificationFault:
    """Build the fault for a missing row `number`.

    The fault is an altered number if the row still exists, else a lost row.
    """
    if strays:
        return _make_fault(
            where, number, column, f"it was altered; {where.lower()} {number} is not in its place"
        )
    return _make_fault(where, number, "run_id", GONE)


def _make_fault(where: str, number: int, column: str, sentence: str) -> VerificationFault:
    return VerificationFault(where=where, number=number, column=column, sentence=sentence)


def _parse_object_or_none(body: bytes) -> dict[str, Any] | None:
    try:
        value = orjson.loads(body)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _parse_canonical_object(body: bytes) -> dict[str, Any] | None:
    """Parse the object in `body`; return None if it is not an object in canonical form."""
    value = _parse_object_or_none(body)
    try:
        return value if value is not None and encode_canonical(value) == body else None
    except NotCanonical:
        return None
