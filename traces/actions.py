"""The verbs of the trace: the only writers of its tables. All join the caller's transaction."""

from collections.abc import Mapping
from uuid import UUID

from tenancy.db.statement_batch import Batch
from tenancy.db.tenant_context import raw_cursor
from traces.core.canonical import compute_digest
from traces.core.integrity.chain import LinkedRows
from traces.models import Salt
from traces.sealed_values import RunKeys, fresh_vault

EVENTS = """
INSERT INTO traces_event (tenant_id, run_id, at, seq, phase, kind, actor, body, previous, hash) VALUES """
RECORDS = """
INSERT INTO traces_record
  (tenant_id, run_id, at, number, phase, source, outcome, target, body, previous, hash) VALUES """
PAYLOADS = "INSERT INTO traces_payload (tenant_id, run_id, digest, body, size) VALUES "
STAYS = " ON CONFLICT DO NOTHING"
SNAPSHOT = "INSERT INTO traces_snapshot (tenant_id, run_id, number, state, digest) VALUES "
# Digests stand in content as they stand in a state: sixty-four hexadecimal digits. A stranger's text that
# holds one copies a part of the same run too many, and nothing else. Bytes beyond ASCII are blanked before,
# for they are written in digits, too. Contents may name one another: only their digests are gone through.
DIGESTS = (
    "regexp_matches(regexp_replace(encode({}, 'escape'), '\\\\[0-7]{{3}}', ' ', 'g'), '[0-9a-f]{{64}}', 'g')"
)
COPY = f"""
INSERT INTO traces_payload (tenant_id, run_id, digest, body, size)
WITH RECURSIVE reached AS (
  SELECT decode(named.found[1], 'hex') AS digest FROM {DIGESTS.format("%(state)s::bytea")} AS named(found)
 UNION
  SELECT named.digest
    FROM reached r
    JOIN traces_payload p ON p.run_id = %(source)s AND p.digest = r.digest AND p.body IS NOT NULL
   CROSS JOIN LATERAL (
         SELECT DISTINCT decode(found[1], 'hex') AS digest
           FROM {DIGESTS.format("p.body")} AS found) AS named)
SELECT %(tenant)s, %(run)s, p.digest, p.body, p.size
  FROM reached r JOIN traces_payload p ON p.run_id = %(source)s AND p.digest = r.digest
 WHERE p.body IS NOT NULL
ON CONFLICT DO NOTHING"""  # noqa: S608 - parts of ours
ERASE = "SELECT erase_payloads(%s)"


def append_transitions(tenant_id: UUID, linked: LinkedRows, *, batch: Batch) -> None:
    """Write what a link added; it has a record at least, and one time."""
    run, at = linked.head.run, linked.records[0].at
    records = [(row.number, *row[3:]) for row in linked.records]
    batch.insert(RECORDS, records, shared=(tenant_id, run, at))
    events = [(row.seq, *row[3:]) for row in linked.events]
    batch.insert(EVENTS, events, shared=(tenant_id, run, at))


def store_payloads(tenant_id: UUID, run_id: UUID, bodies: Mapping[str, bytes], *, batch: Batch) -> None:
    """Keep content under its salted digests (hex); what is there already stays."""
    rows = [(bytes.fromhex(key), body, len(body)) for key, body in bodies.items()]
    batch.insert(PAYLOADS, rows, STAYS, shared=(tenant_id, run_id))


def save_snapshot(tenant_id: UUID, run_id: UUID, number: int, state: bytes, *, batch: Batch) -> str:
    """Keep the whole state after record `number`; its digest (hex), which the record binds.

    `state` is the canonical form.
    """
    found = compute_digest("state", state)
    batch.insert(SNAPSHOT, [(tenant_id, run_id, number, state, bytes.fromhex(found))])
    return found


def open_salt(tenant_id: UUID, run_id: UUID, *, batch: Batch, shared: RunKeys | None = None) -> bytes:
    """The salt of a new run; `shared` are keys made before, or those of the run it goes on from, whose
    digests its state names."""
    keys = shared or fresh_vault(tenant_id).keys
    batch.row(Salt(tenant_id=tenant_id, run_id=run_id, salt=keys.salt, sealing_key=keys.sealing))
    return keys.salt


def copy_payloads(tenant_id: UUID, source: UUID, run_id: UUID, state: bytes) -> None:
    """Give a run under the same salt its own copy of the content that `state` names, and of what that names
    in turn: it is erased with the run that it is a copy for. `state` is the canonical form."""
    keys = {"state": state, "source": source, "tenant": tenant_id, "run": run_id}
    raw_cursor().execute(COPY, keys)


def erase_run_payloads(run_id: UUID) -> int:
    """Remove the bytes and the keys of one run of the current tenant; how many payloads there were (X6).

    The caller says so in the run's trace (PayloadErased): digests stay and the chain still verifies.
    """
    cursor = raw_cursor()
    cursor.execute(ERASE, (run_id,))
    row = cursor.fetchone()
    return int(row[0]) if row is not None else 0
