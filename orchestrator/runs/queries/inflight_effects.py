"""Reads of intents in flight."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pydantic import TypeAdapter

from orchestrator.core.domain.effects import CallModel, CallTool
from tenancy.db.tenant_context import raw_cursor, tenant_transaction

OPEN = """
SELECT DISTINCT ON (effect) body, extract(epoch FROM deadline - clock_timestamp()) FROM orchestrator_intent
 WHERE tenant_id = %s AND effect = ANY(%s) ORDER BY effect, fence DESC"""
# Returns whether an action was, or may have been, sent in an earlier run of a line.
SENT_BEFORE = """
WITH RECURSIVE line AS (
  SELECT id, retry_of_id FROM orchestrator_run WHERE tenant_id = %(tenant)s AND id = %(run)s
 UNION ALL
  SELECT r.id, r.retry_of_id FROM line JOIN orchestrator_run r ON r.id = line.retry_of_id)
SELECT EXISTS (
  SELECT 1 FROM orchestrator_intent i
    JOIN line ON line.id = i.run_id AND line.id <> %(run)s
    LEFT JOIN orchestrator_dispatch d ON d.id = i.effect
   WHERE i.tenant_id = %(tenant)s AND i.tool <> '' AND i.mutating AND i.key = %(key)s
     AND d.verdict IS DISTINCT FROM 'abandoned')"""
EFFECT: TypeAdapter[CallModel | CallTool] = TypeAdapter(CallModel | CallTool)


@dataclass(frozen=True, slots=True)
class IntentRow:
    """An intent's effect, and the seconds until its deadline (negative: past)."""

    effect: CallModel | CallTool
    seconds_left: float


def open_intents(tenant_id: UUID, effects: tuple[str, ...]) -> list[IntentRow]:
    """Return the intents of these effects, each as it was committed last."""
    with tenant_transaction(tenant_id):
        cursor = raw_cursor()
        cursor.execute(OPEN, (tenant_id, list(effects)))
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return [IntentRow(EFFECT.validate_json(bytes(body)), float(left)) for body, left in rows]


def was_sent_in_line(tenant_id: UUID, run_id: UUID, key: str) -> bool:
    """Return whether an earlier run of a line of retries sent a change under this key.

    A change that may have been sent counts as sent.
    """
    with tenant_transaction(tenant_id):
        cursor = raw_cursor()
        cursor.execute(SENT_BEFORE, {"tenant": tenant_id, "run": run_id, "key": key})
        row = cursor.fetchone()
    return row is not None and bool(row[0])
