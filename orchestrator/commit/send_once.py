"""Send an effect exactly once or leave it in doubt: the first Dispatch row decides (docs/ring.md)."""

from typing import Literal
from uuid import UUID

from orchestrator.core.domain.effects import CallTool
from orchestrator.runs.models.run import Dispatch
from tenancy.db.tenant_context import raw_cursor, tenant_transaction

INSERT = """
INSERT INTO orchestrator_dispatch (id, tenant_id, run_id, verdict, at)
VALUES (%s, %s, %s, %s, clock_timestamp()) ON CONFLICT (id) DO NOTHING RETURNING id"""

RENEW = """
INSERT INTO orchestrator_intent
  (effect, tenant_id, run_id, kind, fence, record, attempt, tool, tool_digest, argument_digest, key, mutating,
   body, deadline, at)
SELECT i.effect, i.tenant_id, i.run_id, i.kind, r.fence, i.record, i.attempt, i.tool, i.tool_digest,
       i.argument_digest, i.key, i.mutating, i.body, clock_timestamp() + make_interval(secs => %(seconds)s),
       clock_timestamp()
  FROM orchestrator_intent i JOIN orchestrator_run r ON r.tenant_id = i.tenant_id AND r.id = i.run_id
 WHERE i.effect = %(effect)s AND i.tenant_id = %(tenant)s AND r.id = %(run)s AND r.fence = %(fence)s
 ORDER BY i.fence DESC LIMIT 1
ON CONFLICT DO NOTHING"""
GRACE_SECONDS = 2.0


def renew_intent(tenant_id: UUID, run_id: UUID, effect: CallTool, fence: int) -> None:
    """Commit an effect's intent again, under the fence of the worker that took the run over."""
    seconds = effect.timeout_ms / 1000 + GRACE_SECONDS
    values = {"tenant": tenant_id, "run": run_id, "effect": effect.id, "fence": fence, "seconds": seconds}
    with tenant_transaction(tenant_id):
        raw_cursor().execute(RENEW, values)


def claim_dispatch(
    tenant_id: UUID, run_id: UUID, effect: str, verdict: Literal["started", "abandoned"]
) -> bool:
    """Claim the effect, to send it or to abandon it; return whether this caller was first.

    Commits by itself.
    """
    with tenant_transaction(tenant_id):
        cursor = raw_cursor()
        cursor.execute(INSERT, (effect, tenant_id, run_id, verdict))
        return cursor.fetchone() is not None


def verdict_of(tenant_id: UUID, effect: str) -> str | None:
    """Return the verdict of the first claim, None if the effect was not claimed."""
    with tenant_transaction(tenant_id):
        return Dispatch.objects.filter(id=effect).values_list("verdict", flat=True).first()
