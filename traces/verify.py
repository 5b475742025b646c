"""The proof that a run's trace is what was written: every column, every link, every payload (R-TRACE-3, X2).

`register_check` lets an upper floor add what it keeps for a run (ledger entries, decisions); this floor knows none of
them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from traces.core.canonical import canonical, digest, payload_digest, stamp
from traces.core.chain import START, Head, envelope, event_hash, record_hash
from traces.core.errors import NotCanonical
from traces.core.patch import apply
from traces.models import Event, Payload, Record, Salt, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is not as it was written: the table (and key), the number in its order, the column, a sentence."""

    where: str
    number: int
    column: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.where} {self.number}, {self.column}: {self.sentence}"


Check = Callable[[UUID], list[Fault]]
_CHECKS: dict[str, Check] = {}


def register_check(name: str, check: Check) -> None:
    """Add a check that `verify_run` calls for each run, inside the tenant's context."""
    _CHECKS[name] = check


def verify_run(run_id: UUID, expected: Head | None = None) -> list[Fault]:
    """Every fault of a run's trace; empty when it is whole. `expected` is the head its run claims: it shows a cut end."""
    events = list(Event.objects.filter(run_id=run_id).order_by("seq"))
    records = list(Record.objects.filter(run_id=run_id).order_by("number"))
    faults = _tenants(run_id) + _events(events) + _records(records, events)
    faults += _states(run_id, records) + _payloads(run_id, events) + _head(events, records, expected)
    for check in _CHECKS.values():
        faults += check(run_id)
    return faults


def _fault(where: str, key: object, column: str, sentence: str) -> Fault:
    if isinstance(key, int):
        return Fault(where=where, number=key, column=column, sentence=sentence)
    return Fault(where=f"{where} {key}", number=0, column=column, sentence=sentence)


def _tenants(run_id: UUID) -> list[Fault]:
    """A row whose run was altered leaves a hole where it was; a payload moved to another run is missing here."""
    salts = Salt.objects.filter(run_id=run_id).count()
    return [] if salts == 1 else [_fault("Salt", run_id, "run_id", f"{salts} salts instead of one")]


def _events(events: list[Event]) -> list[Fault]:
    faults: list[Fault] = []
    previous = START
    for index, event in enumerate(events):
        key = event.seq
        if event.seq != index + 1:
            return [*faults, _fault("Event", index + 1, "seq", f"the order has a gap: {event.seq} follows")]
        if bytes(event.previous) != previous:
            faults.append(_fault("Event", key, "previous", "it does not follow the event before it"))
        body = bytes(event.body)
        content = envelope(event.run_id, event.seq, stamp(event.at), event.phase, event.kind, event.actor, body)
        if event_hash(previous, content) != bytes(event.hash):
            column = "kind" if _kind(body) != event.kind else "hash"
            faults.append(_fault("Event", key, column, "its content is not what was hashed"))
        previous = bytes(event.hash)
    return faults


def _kind(body: bytes) -> str | None:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return value.get("kind") if isinstance(value, dict) else None


def _records(records: list[Record], events: list[Event]) -> list[Fault]:
    faults: list[Fault] = []
    previous = START
    said: list[str] = []
    for index, record in enumerate(records):
        if record.number != index:
            return [*faults, _fault("Record", index, "number", f"the order has a gap: {record.number} follows")]
        body = bytes(record.body)
        if bytes(record.previous) != previous:
            faults.append(_fault("Record", index, "previous", "it does not follow the record before it"))
        if record_hash(previous, body) != bytes(record.hash):
            faults.append(_fault("Record", index, "body", "its content is not what was hashed"))
        content = _content(body)
        if content is None:
            faults.append(_fault("Record", index, "body", "it is not in canonical form"))
        else:
            faults += _columns(record, content)
            said += content.get("said", [])
        previous = bytes(record.hash)
    if said != [bytes(event.hash).hex() for event in events]:
        faults.append(_fault("Event", len(said), "hash", "the records speak of other events than there are"))
    return faults


def _content(body: bytes) -> dict[str, Any] | None:
    try:
        value = orjson.loads(body)
        return value if isinstance(value, dict) and canonical(value) == body else None
    except (orjson.JSONDecodeError, NotCanonical):
        return None


def _columns(record: Record, content: Mapping[str, Any]) -> list[Fault]:
    """Columns stand beside the hashed body for queries; each must say what the body says."""
    expected = {
        "run_id": str(record.run_id), "number": record.number, "at": stamp(record.at), "phase": record.phase,
        "source": record.source, "outcome": record.outcome, "target": record.target,
    }  # fmt: skip
    return [
        _fault("Record", record.number, column, "the column differs from the hashed record")
        for column, value in expected.items()
        if content.get("run" if column == "run_id" else column) != value
    ]


def _states(run_id: UUID, records: list[Record]) -> list[Fault]:
    """Every snapshot is the one before it plus the patches between, and its digest is the one a record bound."""
    stored = {row.number: row for row in Snapshot.objects.filter(run_id=run_id)}
    bound: dict[int, str] = {}
    patches: dict[int, dict[str, Any]] = {}
    for record in records:
        content = _content(bytes(record.body)) or {}
        patches[record.number] = content.get("patch", {})
        for name, value in content.get("binds", {}).items():
            if name.startswith("snapshot:"):
                bound[int(name.partition(":")[2])] = value
    faults = [_fault("Snapshot", n, "number", "no record speaks of it") for n in stored if n not in bound]
    faults += [_fault("Snapshot", n, "number", "it is missing") for n in bound if n not in stored]
    plain: dict[str, Any] | None = None
    for number in sorted(patches):
        plain = apply(plain, patches[number]) if plain is not None else None
        row = stored.get(number)
        if row is None:
            continue
        state = bytes(row.state)
        if digest("state", state) != bound.get(number):
            faults.append(_fault("Snapshot", number, "state", "it is not the state that its record bound"))
        elif bytes(row.digest).hex() != bound[number]:
            faults.append(_fault("Snapshot", number, "digest", "it is not the digest of its state"))
        elif plain is not None and canonical(plain) != state:
            faults.append(_fault("Snapshot", number, "state", "patches lead to another state"))
        plain = orjson.loads(state) if _is_json(state) else plain
    return faults


def _is_json(body: bytes) -> bool:
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return True


def _payloads(run_id: UUID, events: list[Event]) -> list[Fault]:
    """Content fits its digest, and whatever the trace names is there, or was erased as the trace says."""
    row = Salt.objects.filter(run_id=run_id).first()
    salt = bytes(row.salt) if row is not None and row.salt is not None else None
    erased = any(event.kind == "payload_erased" for event in events)
    faults: list[Fault] = []
    if salt is None and not erased:
        faults.append(_fault("Salt", run_id, "salt", "the content was erased, and the trace does not say so"))
    known: set[str] = set()
    for payload in Payload.objects.filter(run_id=run_id).order_by("id").iterator(chunk_size=500):
        name = bytes(payload.digest).hex()
        known.add(name)
        faults += _payload(payload, name, salt, erased=erased)
    named = {value for event in events for value in _digests(bytes(event.body))}
    faults += [_fault("Payload", name, "digest", "the trace names it and it is missing") for name in sorted(named - known)]
    return faults


def _payload(payload: Payload, name: str, salt: bytes | None, *, erased: bool) -> list[Fault]:
    if payload.body is None:
        return [] if erased else [_fault("Payload", name, "body", "it is gone, and the trace does not say so")]
    body = bytes(payload.body)
    if salt is not None and payload_digest(salt, body) != name:
        return [_fault("Payload", name, "body", "it does not fit its digest")]
    return [_fault("Payload", name, "size", "it is not the body's")] if payload.size != len(body) else []


NAMING = ("goal", "request", "reply", "arguments", "result", "observation", "draft", "packet", "answer", "detail", "digest")
NOT_CONTENT = {"phase_noted": ("digest",), "approval_expired": ("request",)}


def _digests(body: bytes) -> list[str]:
    """The content an event names: fields that hold 64 hex digits."""
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        return []
    skipped = NOT_CONTENT.get(said.get("kind", ""), ())
    return [
        value
        for name, value in said.items()
        if name in NAMING and name not in skipped and isinstance(value, str) and _is_hex(value)
    ]


def _is_hex(text: str) -> bool:
    return len(text) == 64 and all(letter in "0123456789abcdef" for letter in text)


def _head(events: list[Event], records: list[Record], expected: Head | None) -> list[Fault]:
    """A cut end is seen by the head that the run's row holds."""
    if expected is None:
        return []
    faults: list[Fault] = []
    last_event = (events[-1].seq, bytes(events[-1].hash)) if events else (0, START)
    last_record = (records[-1].number, bytes(records[-1].hash)) if records else (-1, START)
    if last_event != (expected.event_seq, expected.event_hash):
        faults.append(_fault("Event", expected.event_seq, "seq", f"the run's last event is missing: {last_event[0]} is last"))
    if last_record != (expected.record_number, expected.record_hash):
        faults.append(
            _fault("Record", expected.record_number, "number", f"the run's last record is missing: {last_record[0]} is last")
        )
    return faults
