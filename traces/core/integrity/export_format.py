"""Self-verifying export of a trace as JSON lines (R-TRACE-4; docs/trace-format.md).

The verification needs no database. One object per line, distinguished by `line`: a header, the manifest and
its pins, payloads, snapshots, events, records, and an end that counts the lines before it.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson

from tenancy.core.timestamps import read_moment
from traces.core.canonical import compute_digest, format_canonical_time
from traces.core.errors import NotAnExport
from traces.core.integrity.chain import EventRow, Head, RecordRow
from traces.core.integrity.verification import PayloadRow, SnapshotRow, Trace, VerificationFault, faults_of

FORMAT = "interlock trace 1"
NUMBERS = ("number", "seq", "phase", "size", "record_number", "event_seq")


def lines_of(
    trace: Trace, tenant: UUID, head: Head | None, manifest: bytes | None, pins: bytes | None
) -> Iterator[bytes]:
    """Yield the lines of a trace, each with its line feed.

    `trace.payloads` is read once, while the lines are generated.
    """
    count = 0
    for line in _build_line_objects(trace, tenant, head, manifest, pins):
        count += 1
        yield _encode_line(line)
    yield _encode_line({"line": "end", "lines": count})


def _encode_line(value: dict[str, Any]) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def _build_line_objects(
    trace: Trace, tenant: UUID, head: Head | None, manifest: bytes | None, pins: bytes | None
) -> Iterator[dict[str, Any]]:
    yield {
        "line": "header",
        "format": FORMAT,
        "tenant": str(tenant),
        "run": str(trace.run),
        "salts": [_encode_base64(salt) for salt in trace.salts],
        "head": None if head is None else _encode_head(head),
    }
    if manifest is not None:
        yield {"line": "manifest", "body": _encode_base64(manifest)}
    if pins is not None:
        yield {"line": "pins", "body": _encode_base64(pins)}
    for payload in trace.payloads:
        yield {
            "line": "payload", "digest": payload.digest.hex(), "size": payload.size,
            "body": _encode_base64(payload.body),
        }  # fmt: skip
    for snapshot in trace.snapshots:
        yield {
            "line": "snapshot", "number": snapshot.number, "digest": snapshot.digest.hex(),
            "state": _encode_base64(snapshot.state),
        }  # fmt: skip
    for event in trace.events:
        yield {"line": "event", **_encode_row(event)}
    for record in trace.records:
        yield {"line": "record", **_encode_row(record)}


def _encode_row(row: EventRow | RecordRow) -> dict[str, Any]:
    """Return a row's own columns; bodies are base64, because an altered body need not be valid text."""
    value = row._asdict()
    del value["run"]
    return value | {
        "at": format_canonical_time(row.at),
        "body": _encode_base64(row.body),
        "previous": row.previous.hex(),
        "hash": row.hash.hex(),
    }


def _encode_head(head: Head) -> dict[str, Any]:
    return {
        "record_number": head.record_number, "record_hash": head.record_hash.hex(),
        "event_seq": head.event_seq, "event_hash": head.event_hash.hex(),
    }  # fmt: skip


def _encode_base64(body: bytes | None) -> str | None:
    return None if body is None else b64encode(body).decode()


def _decode_base64(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text, validate=True)


@dataclass(slots=True)
class _Read:
    """The content of the lines read so far."""

    run: UUID | None = None
    tenant: str = ""
    salts: tuple[bytes | None, ...] = ()
    head: Head | None = None
    manifest: bytes | None = None
    pins: bytes | None = None
    payloads: list[PayloadRow] = field(default_factory=list)
    snapshots: list[SnapshotRow] = field(default_factory=list)
    events: list[EventRow] = field(default_factory=list)
    records: list[RecordRow] = field(default_factory=list)
    lines: int = 0
    ended: bool = False


def verify_lines(lines: Iterable[bytes]) -> list[VerificationFault]:
    """Return every fault of an exported trace; empty if it is intact.

    Raises: NotAnExport if the lines are not an export.
    """
    read = _Read()
    for number, line in enumerate(lines, 1):
        try:
            _take_line(read, orjson.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise NotAnExport(detail=f"line {number}: {type(error).__name__}: {error}"[:200]) from None
    if read.run is None:
        raise NotAnExport(detail="there is no header")
    trace = Trace(
        run=read.run, salts=read.salts, events=read.events, records=read.records, snapshots=read.snapshots,
        payloads=read.payloads,
    )  # fmt: skip
    faults = faults_of(trace, read.head)
    if not read.ended:
        faults.append(_make_fault("end", read.lines + 1, "line", "the file was cut off"))
    return [*faults, *_verify_pins(read)]


def _take_line(read: _Read, line: dict[str, Any]) -> None:
    kind = line["line"]
    if (read.run is None) != (kind == "header") or read.ended:
        raise ValueError(f"a {kind} does not belong here")
    if kind == "header":
        _take_header(read, line)
    elif kind in ("manifest", "pins"):
        if getattr(read, kind) is not None:
            raise ValueError(f"these are other {kind} than before")
        setattr(read, kind, _decode_base64(line["body"]))
    elif kind == "end":
        if line["lines"] != read.lines:
            raise ValueError(f"{line['lines']} lines were written, {read.lines} are here")
        read.ended = True
    else:
        _take_row(read, kind, line)
    read.lines += 1


def _take_header(read: _Read, line: dict[str, Any]) -> None:
    if line["format"] != FORMAT:
        raise ValueError(f"the format is {line['format']}")
    read.run, read.tenant = UUID(line["run"]), str(line["tenant"])
    read.salts = tuple(_decode_base64(salt) for salt in line["salts"])
    if line["head"] is not None:
        head = line["head"]
        _check_types(head)
        read.head = Head(
            run=read.run, record_number=head["record_number"], record_hash=bytes.fromhex(head["record_hash"]),
            event_seq=head["event_seq"], event_hash=bytes.fromhex(head["event_hash"]),
        )  # fmt: skip


def _take_row(read: _Read, kind: str, line: dict[str, Any]) -> None:
    row = {name: value for name, value in line.items() if name != "line"}
    # Erased content is null; everything else is text or a number.
    _check_types({name: value for name, value in row.items() if (kind, name) != ("payload", "body")})
    if kind == "payload":
        read.payloads.append(
            PayloadRow(bytes.fromhex(row["digest"]), _decode_base64(row["body"]), row["size"])
        )
    elif kind == "snapshot":
        state = _decode_base64(row["state"]) or b""
        read.snapshots.append(SnapshotRow(row["number"], state, bytes.fromhex(row["digest"])))
    elif kind in ("event", "record"):
        row |= {"run": read.run, "at": read_moment(row["at"]), "body": _decode_base64(row["body"])}
        row |= {name: bytes.fromhex(row[name]) for name in ("previous", "hash")}
        if kind == "event":
            read.events.append(EventRow(**row))
        else:
            read.records.append(RecordRow(**row))
    else:
        raise ValueError(f"nobody knows a {kind}")


def _check_types(row: dict[str, Any]) -> None:
    for name, value in row.items():
        if type(value) is not (int if name in NUMBERS else str):
            raise ValueError(f"{name} is of another type")


def _verify_pins(read: _Read) -> Iterator[VerificationFault]:
    """Check that the first record bound the manifest and that the manifest names the tenant and the pins."""
    binds = _parse_object_or_empty(read.records[0].body).get("binds") if read.records else None
    bound = binds.get("manifest") if isinstance(binds, dict) else None
    if read.manifest is None:
        if bound is not None:
            yield _make_fault("manifest", 0, "body", "it is missing, and the first record bound one")
        return
    if bound != compute_digest("manifest", read.manifest):
        yield _make_fault("manifest", 0, "body", "it is not the manifest that the first record bound")
        return
    manifest = _parse_object_or_empty(read.manifest)
    if read.tenant != manifest.get("tenant", read.tenant):
        yield _make_fault("header", 0, "tenant", "it is not the tenant that the manifest names")
    named = manifest.get("pins_digest")
    if read.pins is None:
        if named is not None:
            yield _make_fault("pins", 0, "body", "they are missing, and the manifest names some")
    elif named != compute_digest("pins", read.pins):
        yield _make_fault("pins", 0, "body", "they are not the pins that the manifest names")


def _parse_object_or_empty(body: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _make_fault(where: str, number: int, column: str, sentence: str) -> VerificationFault:
    return VerificationFault(where=where, number=number, column=column, sentence=sentence)
