"""The verbs of the trace: the only writers of its tables. All join the caller's transaction."""

import secrets
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import psycopg

from tenancy.context import raw_cursor
from traces.core.canonical import digest
from traces.core.chain import Linked
from traces.models import Salt

# Bytes are bound in binary (%b): as text each would be written as hex, twice its size, and read back.
EVENTS = """
INSERT INTO traces_event (tenant_id, run_id, at, seq, phase, kind, actor, body, previous, hash)
SELECT %(tenant)s, %(run)s, %(at)s, * FROM unnest(
  %(seq)s::bigint[], %(phase)s::smallint[], %(kind)s::text[], %(actor)s::text[],
  %(body)b::bytea[], %(previous)b::bytea[], %(hash)b::bytea[])"""
RECORDS = """
INSERT INTO traces_record
  (tenant_id, run_id, at, number, phase, source, outcome, target, body, previous, hash)
SELECT %(tenant)s, %(run)s, %(at)s, * FROM unnest(
  %(number)s::bigint[], %(phase)s::smallint[], %(source)s::text[], %(outcome)s::text[], %(target)s::text[],
  %(body)b::bytea[], %(previous)b::bytea[], %(hash)b::bytea[])"""
PAYLOADS = """
INSERT INTO traces_payload (tenant_id, run_id, digest, body, size)
SELECT %(tenant)s, %(run)s, * FROM unnest(%(digest)b::bytea[], %(body)b::bytea[], %(size)s::bigint[])
ON CONFLICT DO NOTHING"""
SNAPSHOT = """
INSERT INTO traces_snapshot (tenant_id, run_id, number, state, digest) VALUES (%s, %s, %s, %b, %b)"""
ERASE = "SELECT erase_payloads(%s)"
SALT_BYTES = 32
Cursor = psycopg.Cursor[Any]


def append(tenant_id: UUID, linked: Linked, *, cursor: Cursor) -> None:
    """Write what a link added, one statement a table; nothing is fetched, so it may ride in a pipeline."""
    for table, rows in ((RECORDS, linked.records), (EVENTS, linked.events)):
        if rows:
            columns: dict[str, Any] = dict(
                zip(rows[0]._fields, map(list, zip(*rows, strict=True)), strict=True)
            )
            # A link has one run and one time.
            columns |= {"tenant": tenant_id, "run": linked.head.run, "at": rows[0].at}
            cursor.execute(table, columns, prepare=True)


def store_payloads(tenant_id: UUID, run_id: UUID, bodies: Mapping[str, bytes], *, cursor: Cursor) -> None:
    """Keep content under its salted digests (hex); what is there already stays. May ride in a pipeline."""
    if not bodies:
        return
    cursor.execute(
        PAYLOADS,
        {
            "tenant": tenant_id, "run": run_id, "digest": [bytes.fromhex(key) for key in bodies],
            "body": list(bodies.values()), "size": [len(body) for body in bodies.values()],
        },
        prepare=True,
    )  # fmt: skip


def save_snapshot(tenant_id: UUID, run_id: UUID, number: int, state: bytes, *, cursor: Cursor) -> str:
    """Keep the whole state after record `number`; its digest (hex), which the record binds.

    `state` is the canonical form. May ride in a pipeline.
    """
    found = digest("state", state)
    cursor.execute(SNAPSHOT, (tenant_id, run_id, number, state, bytes.fromhex(found)), prepare=True)
    return found


def open_salt(tenant_id: UUID, run_id: UUID) -> bytes:
    """The salt of a new run."""
    salt = secrets.token_bytes(SALT_BYTES)
    Salt.objects.create(tenant_id=tenant_id, run_id=run_id, salt=salt)
    return salt


def erase(run_id: UUID) -> int:
    """Remove the bytes and the salt of one run of the current tenant; how many payloads there were (X6).

    The caller says so in the run's trace (PayloadErased): digests stay and the chain still verifies.
    """
    cursor = raw_cursor()
    cursor.execute(ERASE, (run_id,))
    row = cursor.fetchone()
    return int(row[0]) if row is not None else 0
