"""The pending signals in a run's mailbox. Call it inside the tenant's context."""

from typing import Any, Final, LiteralString, NamedTuple
from uuid import UUID

import orjson

from tenancy.db.tenant_context import raw_cursor

UNTAKEN: Final = """
SELECT EXISTS (SELECT 1 FROM orchestrator_runsignal s WHERE s.run_id = %(run)s
  AND NOT EXISTS (SELECT 1 FROM orchestrator_signalreceipt r WHERE r.id = s.id))"""
PARKING: Final = """
SELECT EXISTS (SELECT 1 FROM orchestrator_runsignal s WHERE s.run_id = %(run)s AND s.kind = 'pause'
  AND s.by IS NULL AND NOT EXISTS (SELECT 1 FROM orchestrator_signalreceipt r WHERE r.id = s.id))"""


LOOK_UPS: Final = """
SELECT (s.payload -> 'change')::text, s.by::text FROM orchestrator_runsignal s
 WHERE s.run_id = %(run)s AND s.kind = 'look_up'
   AND NOT EXISTS (SELECT 1 FROM orchestrator_signalreceipt r WHERE r.id = s.id)
 ORDER BY s.id LIMIT 20"""
OF_EFFECT: Final = """
SELECT EXISTS (SELECT 1 FROM orchestrator_runsignal s WHERE s.run_id = %(run)s AND s.kind = %(kind)s
  AND s.payload -> 'change' ->> 'effect' = %(effect)s
  AND NOT EXISTS (SELECT 1 FROM orchestrator_signalreceipt r WHERE r.id = s.id))"""


class AskedLookUp(NamedTuple):
    """A look-up that a person requested: the change, and the person."""

    change: dict[str, Any]
    by: str


def asked_look_ups(run_id: UUID) -> tuple[AskedLookUp, ...]:
    """Return the requested look-ups that no record has consumed."""
    cursor = raw_cursor()
    cursor.execute(LOOK_UPS, {"run": run_id})
    return tuple(AskedLookUp(orjson.loads(change), by) for change, by in cursor.fetchall())


def is_asked_of_effect(run_id: UUID, kind: str, effect: str) -> bool:
    """True if a signal of this kind about this effect is pending."""
    cursor = raw_cursor()
    cursor.execute(OF_EFFECT, {"run": run_id, "kind": kind, "effect": effect})
    row = cursor.fetchone()
    return bool(row and row[0])


def has_untaken(run_id: UUID) -> bool:
    """Return whether a signal is pending that no record has consumed."""
    return _has_pending_signal(UNTAKEN, run_id)


def has_pending_park_signal(run_id: UUID) -> bool:
    """Return whether a pause signal is pending that Interlock itself sent."""
    return _has_pending_signal(PARKING, run_id)


def _has_pending_signal(question: LiteralString, run_id: UUID) -> bool:
    cursor = raw_cursor()
    cursor.execute(question, {"run": run_id}, prepare=True)
    row = cursor.fetchone()
    return bool(row and row[0])
