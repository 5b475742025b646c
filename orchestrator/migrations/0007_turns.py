"""Fair dispatch: which run's turn it is, and a sweep that goes round the tenants (R-BUDGET-11)."""

from django.db import migrations, models
from django.db.models import Q

from tenancy.db.integrity_guards import create_definer_function

READY = "status IN ('queued', 'in_progress') AND wake_at IS NULL"
# A skip scan over the tenants that have anything ready, the oldest of each, and then the fewest at work. Runs
# that the caller has taken and that are still queued count as at work.
NEXT = f"""
WITH RECURSIVE house AS (
  (SELECT tenant_id FROM orchestrator_run WHERE {READY} ORDER BY tenant_id LIMIT 1)
  UNION ALL
  SELECT (SELECT r.tenant_id FROM orchestrator_run r
           WHERE r.status IN ('queued', 'in_progress') AND r.wake_at IS NULL AND r.tenant_id > h.tenant_id
           ORDER BY r.tenant_id LIMIT 1)
    FROM house h WHERE h.tenant_id IS NOT NULL),
mine AS (
  SELECT tenant_id, count(*) AS runs, count(*) FILTER (WHERE status = 'queued') AS waiting
    FROM orchestrator_run WHERE id = ANY(taken) GROUP BY tenant_id)
SELECT first.id
  FROM house h
 CROSS JOIN LATERAL (
       SELECT r.id, r.created_at FROM orchestrator_run r
        WHERE r.tenant_id = h.tenant_id AND r.status IN ('queued', 'in_progress') AND r.wake_at IS NULL
          AND (r.lease_owner IS NULL OR r.lease_until < clock_timestamp()) AND NOT r.id = ANY(taken)
        ORDER BY r.created_at, r.id LIMIT 1) first
 CROSS JOIN LATERAL (
       SELECT count(*) AS runs FROM orchestrator_run w
        WHERE w.tenant_id = h.tenant_id AND w.status = 'in_progress') busy
 CROSS JOIN LATERAL (
       SELECT max(s.started_at) AS at FROM orchestrator_run s WHERE s.tenant_id = h.tenant_id) begun
  LEFT JOIN mine ON mine.tenant_id = h.tenant_id
 WHERE h.tenant_id IS NOT NULL AND coalesce(mine.runs, 0) < share
 ORDER BY busy.runs + coalesce(mine.waiting, 0), begun.at NULLS FIRST, first.created_at, first.id
 LIMIT 1
"""
DUE = """
SELECT due.id FROM (
  SELECT r.id, r.created_at, row_number() OVER (PARTITION BY r.tenant_id ORDER BY r.created_at, r.id) AS turn
    FROM orchestrator_run r
   WHERE (r.lease_owner IS NULL OR r.lease_until < clock_timestamp())
     AND (r.finished_at > clock_timestamp() - interval '1 day' AND EXISTS (
            SELECT 1 FROM orchestrator_runsignal s WHERE s.run_id = r.id
               AND NOT EXISTS (SELECT 1 FROM orchestrator_signalreceipt t WHERE t.id = s.id))
     OR r.status IN ('queued', 'in_progress', 'awaiting_gate', 'awaiting_input', 'paused')
     AND (r.status IN ('queued', 'in_progress') AND r.wake_at IS NULL
          OR r.wake_at <= clock_timestamp()
          OR r.lease_until < clock_timestamp()
          OR EXISTS (SELECT 1 FROM orchestrator_runsignal s WHERE s.run_id = r.id
               AND NOT EXISTS (SELECT 1 FROM orchestrator_signalreceipt t WHERE t.id = s.id))))) due
 ORDER BY due.turn, due.created_at LIMIT least(n, 100)
"""


class Migration(migrations.Migration):
    """Two indexes, one function more, one that goes round."""

    dependencies = [("orchestrator", "0006_circuits")]
    operations = [
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                fields=["tenant", "created_at", "id"],
                condition=Q(status__in=("queued", "in_progress"), wake_at=None),
                name="run_ready",
            ),
        ),
        migrations.AddIndex(
            model_name="run", index=models.Index(fields=["tenant", "-started_at"], name="run_begun")
        ),
        create_definer_function(
            "next_run", "taken uuid[], share integer", "SETOF uuid", NEXT, volatility="VOLATILE"
        ),
        migrations.RunSQL("DROP FUNCTION due_runs(integer);", migrations.RunSQL.noop),
        create_definer_function("due_runs", "n integer", "SETOF uuid", DUE, volatility="VOLATILE"),
    ]
