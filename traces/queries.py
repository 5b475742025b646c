"""Reads of the trace. All functions run in the tenant's context."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from tenancy.db.tenant_context import raw_cursor
from traces.core.errors import Erased, TraceMissing
from traces.core.integrity.chain import EventRow, RecordRow
from traces.core.integrity.completeness import missing_parts
from traces.core.integrity.verification import PayloadRow, SnapshotRow, Trace
from traces.models import Event, Payload, Record, Salt, Snapshot
from traces.ports import get_runs_port
from traces.sealed_values import RunKeys, Vault, learn_sealed

PAYLOADS = """
SELECT digest, body FROM traces_payload
 WHERE run_id = %s AND digest = ANY(%b::bytea[]) AND body IS NOT NULL"""
# The snapshot's number is a scalar subquery, not a join, so that the planner uses the index of the records.
RECALL = """
WITH newest AS (
  SELECT number, state FROM traces_snapshot WHERE run_id = %(run)s ORDER BY number DESC LIMIT 1)
SELECT number, state, NULL::bytea FROM newest
UNION ALL
SELECT number, NULL, body FROM traces_record
 WHERE run_id = %(run)s AND number > (SELECT number FROM newest)"""
SALT = "SELECT salt, sealing_key FROM traces_salt WHERE run_id = %(run)s"
# Uses a partial index: a run that sealed nothing costs no reads. The canonical form of a sealed payload
# begins with this name.
SEALED = """
SELECT digest, body FROM traces_payload
 WHERE run_id = %(run)s AND substring(body FROM 1 FOR 8) = '{"box":"'::bytea"""
EVENT_COLUMNS = ("run_id", "seq", "at", "phase", "kind", "actor", "body", "previous", "hash")
# Like RECALL, for an earlier record.
RECALL_AT = """
WITH newest AS (
  SELECT number, state FROM traces_snapshot WHERE run_id = %(run)s AND number <= %(number)s
   ORDER BY number DESC LIMIT 1)
SELECT number, state, NULL::bytea FROM newest
UNION ALL
SELECT number, NULL, body FROM traces_record
 WHERE run_id = %(run)s AND number > (SELECT number FROM newest) AND number <= %(number)s"""
RECORD_COLUMNS = (
    "run_id", "number", "at", "phase", "source", "outcome", "target", "body", "previous", "hash",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotWithPatches:
    """The newest snapshot and the patches after it, in order."""

    snapshot_number: int
    state: bytes
    patches: tuple[dict[str, Any], ...]


def load_state_parts(run_id: UUID) -> SnapshotWithPatches:
    """Load the newest snapshot and the patches after it, in one round trip.

    Raises: TraceMissing.
    """
    cursor = raw_cursor()
    cursor.execute(RECALL, {"run": run_id}, prepare=True, binary=True)
    return parse_state_parts(cursor.fetchall())


def recall_at(run_id: UUID, number: int) -> SnapshotWithPatches:
    """Load the snapshot and patches that make up the state after record `number`.

    Raises: TraceMissing.
    """
    cursor = raw_cursor()
    cursor.execute(RECALL_AT, {"run": run_id, "number": number}, binary=True)
    return parse_state_parts(cursor.fetchall())


def parse_state_parts(found: Sequence[tuple[Any, ...]]) -> SnapshotWithPatches:
    """Parse the rows of `RECALL`.

    Raises: TraceMissing.
    """
    rows = sorted(found, key=lambda row: (row[2] is not None, row[0]))
    if not rows:
        raise TraceMissing
    patches = tuple(orjson.loads(body)["patch"] for _, _, body in rows[1:])
    return SnapshotWithPatches(snapshot_number=rows[0][0], state=bytes(rows[0][1]), patches=patches)


def load_payloads(run_id: UUID, digests: Iterable[str]) -> dict[str, bytes]:
    """Load content by hex digest; content that was erased or never stored is absent."""
    cursor = raw_cursor()
    wanted = [bytes.fromhex(digest) for digest in digests]
    cursor.execute(PAYLOADS, (run_id, wanted), prepare=True, binary=True)
    return {bytes(digest).hex(): bytes(body) for digest, body in cursor.fetchall()}


def load_salt(run_id: UUID) -> bytes:
    """Load the run's salt.

    Raises: TraceMissing, Erased.
    """
    return parse_salt(list(Salt.objects.filter(run_id=run_id).values_list("salt")))


def parse_salt(found: Sequence[tuple[Any, ...]]) -> bytes:
    """Parse the rows of `SALT`.

    Raises: TraceMissing, Erased.
    """
    if not found:
        raise TraceMissing
    if found[0][0] is None:
        raise Erased
    return bytes(found[0][0])


def sealing_key(found: Sequence[tuple[Any, ...]]) -> bytes | None:
    """Return the wrapped key from the rows of `SALT`; None for a run older than sealed values."""
    return _to_bytes(found[0][1]) if found else None


def keys_of(run_id: UUID) -> RunKeys:
    """Load the run's salt and the wrapped key of its sealed values.

    Raises: TraceMissing, Erased.
    """
    found = list(Salt.objects.filter(run_id=run_id).values_list("salt", "sealing_key"))
    return RunKeys(salt=parse_salt(found), sealing=sealing_key(found))


def vault_of(tenant_id: UUID, run_id: UUID) -> Vault | None:
    """Load the sealed values of a run, with everything sealed so far known to the vault.

    None for a run that is older than sealed values or was erased.
    """
    row = Salt.objects.filter(run_id=run_id).values_list("salt", "sealing_key").first()
    if row is None or row[0] is None or row[1] is None:
        return None
    vault = Vault(tenant=tenant_id, salt=bytes(row[0]), wrapped=bytes(row[1]))
    cursor = raw_cursor()
    cursor.execute(SEALED, {"run": run_id})
    learn_sealed(vault, cursor.fetchall())
    return vault


def events_after(run_id: UUID, seq: int, limit: int = 500) -> list[Event]:
    """List the run's events after `seq`, in order, at most `limit`."""
    return list(Event.objects.filter(run_id=run_id, seq__gt=seq).order_by("seq")[:limit])


def list_records(run_id: UUID) -> list[Record]:
    """List the run's records in order."""
    return list(Record.objects.filter(run_id=run_id).order_by("number"))


def list_snapshots(run_id: UUID) -> list[Snapshot]:
    """List the run's snapshots in order."""
    return list(Snapshot.objects.filter(run_id=run_id).order_by("number"))


def traced_runs() -> list[UUID]:
    """List the runs of this tenant that have a trace, oldest first."""
    found = Record.objects.order_by("run_id").values_list("run_id", flat=True).distinct()
    return list(found)


def trace_of(run_id: UUID) -> Trace:
    """Load everything stored of a run, as rows; payloads are fetched lazily."""
    return Trace(
        run=run_id,
        salts=tuple(
            _to_bytes(salt) for salt in Salt.objects.filter(run_id=run_id).values_list("salt", flat=True)
        ),
        events=[
            EventRow(*row[:6], *map(bytes, row[6:]))
            for row in Event.objects.filter(run_id=run_id).order_by("seq").values_list(*EVENT_COLUMNS)
        ],
        records=[
            RecordRow(*row[:7], *map(bytes, row[7:]))
            for row in Record.objects.filter(run_id=run_id).order_by("number").values_list(*RECORD_COLUMNS)
        ],
        snapshots=[
            SnapshotRow(row.number, bytes(row.state), bytes(row.digest)) for row in list_snapshots(run_id)
        ],
        payloads=_iterate_payload_rows(run_id),
    )


def _iterate_payload_rows(run_id: UUID) -> Iterator[PayloadRow]:
    rows = Payload.objects.filter(run_id=run_id).order_by("digest").values_list("digest", "body", "size")
    for digest, body, size in rows.iterator(chunk_size=200):
        yield PayloadRow(bytes(digest), _to_bytes(body), size)


def _to_bytes(stored: Any) -> bytes | None:
    return None if stored is None else bytes(stored)


def list_missing_parts(run_id: UUID) -> tuple[str, ...]:
    """Describe the parts that are absent from a finished run's trace (R-TRACE-2).

    For a run that the registered port does not know, only the trace itself is checked, without the
    manifest.

    Raises: TraceMissing.
    """
    bodies = [
        orjson.loads(bytes(body))
        for body in Event.objects.filter(run_id=run_id).order_by("seq").values_list("body", flat=True)
    ]
    if not bodies:
        raise TraceMissing
    pinned = get_runs_port().load_pins(run_id)
    manifest: dict[str, Any] | None = None
    if pinned is not None:
        manifest = {**orjson.loads(pinned.manifest), "pins": orjson.loads(pinned.pins)}
    return missing_parts(bodies, manifest, snapshots=Snapshot.objects.filter(run_id=run_id).count())
