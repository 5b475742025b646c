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
