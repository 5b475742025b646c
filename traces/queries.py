"""Reads of the trace. All inside the tenant's context."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from tenancy.context import raw_cursor
from traces.core.errors import Erased, TraceMissing
from traces.models import Event, Record, Salt, Snapshot

PAYLOADS = "SELECT digest, body FROM traces_payload WHERE run_id = %s AND digest = ANY(%s) AND body IS NOT NULL"
RECALL = """
WITH newest AS (SELECT number, state FROM traces_snapshot WHERE run_id = %(run)s ORDER BY number DESC LIMIT 1)
SELECT number, state, NULL::bytea FROM newest
UNION ALL
(SELECT r.number, NULL, r.body FROM traces_record r, newest n WHERE r.run_id = %(run)s AND r.number > n.number
  ORDER BY r.number)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """The newest snapshot and the patches after it, in order."""

    snapshot_number: int
    state: bytes
    patches: tuple[dict[str, Any], ...]


def recall(run_id: UUID) -> Recalled:
    """What the state is made of, in one round trip. Raises TraceMissing."""
    cursor = raw_cursor()
    cursor.execute(RECALL, {"run": run_id}, prepare=True)
    rows = sorted(cursor.fetchall(), key=lambda row: (row[2] is not None, row[0]))
    if not rows:
        raise TraceMissing
    patches = tuple(orjson.loads(bytes(body))["patch"] for _, _, body in rows[1:])
    return Recalled(snapshot_number=rows[0][0], state=bytes(rows[0][1]), patches=patches)


def payloads(run_id: UUID, digests: Iterable[str]) -> dict[str, bytes]:
    """Content by hex digest; what was erased or never stored is absent."""
    cursor = raw_cursor()
    cursor.execute(PAYLOADS, (run_id, [bytes.fromhex(digest) for digest in digests]), prepare=True)
    return {bytes(digest).hex(): bytes(body) for digest, body in cursor.fetchall()}


def salt(run_id: UUID) -> bytes:
    """The run's salt. Raises TraceMissing, Erased."""
    row = Salt.objects.filter(run_id=run_id).first()
    if row is None:
        raise TraceMissing
    if row.salt is None:
        raise Erased
    return bytes(row.salt)


def events_after(run_id: UUID, seq: int, limit: int = 500) -> list[Event]:
    """The run's events after `seq`, in order, at most `limit`."""
    return list(Event.objects.filter(run_id=run_id, seq__gt=seq).order_by("seq")[:limit])


def records(run_id: UUID) -> list[Record]:
    """The run's records in order."""
    return list(Record.objects.filter(run_id=run_id).order_by("number"))


def snapshots(run_id: UUID) -> list[Snapshot]:
    """The run's snapshots in order."""
    return list(Snapshot.objects.filter(run_id=run_id).order_by("number"))
