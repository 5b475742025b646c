"""Write an ended run's usage: figures next to their limits, and daily spend by model and tool.

They are written in the transaction of the terminal record, so each run counts once whatever crashes. Nothing
is written while a run goes on.

Spec: R-BUDGET-14.
"""

from datetime import datetime
from typing import Final

from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.core.domain.effects import Finish
from tenancy.db.tenant_context import raw_cursor

_FIGURES: Final = """
INSERT INTO budgets_runfigures (id, tenant_id, workflow, terminal_code, ended_at, cost, cost_limit, steps,
  steps_limit, depth, depth_limit, tokens, tokens_limit, seconds, seconds_limit)
SELECT %(run)s, %(tenant)s, %(workflow)s, %(code)s, %(at)s,
  coalesce(max(used) FILTER (WHERE dimension = 'cost_usd'), 0),
  max("limit") FILTER (WHERE dimension = 'cost_usd'),
  coalesce(max(used) FILTER (WHERE dimension = 'steps'), 0),
  max("limit") FILTER (WHERE dimension = 'steps'),
  coalesce(max(used) FILTER (WHERE dimension = 'depth'), 0),
  max("limit") FILTER (WHERE dimension = 'depth'),
  coalesce(max(used) FILTER (WHERE dimension = 'total_tokens'), 0),
  max("limit") FILTER (WHERE dimension = 'total_tokens'),
  round(coalesce(max(used) FILTER (WHERE dimension = 'wall_clock_seconds'), 0), 3),
  round(max("limit") FILTER (WHERE dimension = 'wall_clock_seconds'), 3)
  FROM budgets_line WHERE tenant_id = %(tenant)s AND account_id = %(run)s
ON CONFLICT (id) DO NOTHING"""
# Ordered, so that two runs that end at once lock the rows of a day in the same order.
_SPENT: Final = """
INSERT INTO budgets_dayspend (id, tenant_id, day, workflow, kind, name, usd, calls)
SELECT gen_random_uuid(), %(tenant)s, took.day, %(workflow)s, took.kind, left(took.name, 265),
       coalesce(sum(took.usd), 0), count(*) FILTER (WHERE took.cause = 'settle')
  FROM (SELECT (e.at AT TIME ZONE z.time_zone)::date AS day, e.cause,
               (e.amounts::jsonb #>> '{used,cost_usd}')::numeric AS usd,
               CASE WHEN i.kind = 'call_model' THEN 'model' WHEN i.tool <> '' THEN 'tool' ELSE 'other' END
                 AS kind,
               coalesce(CASE WHEN i.kind = 'call_model' THEN convert_from(i.body, 'UTF8')::jsonb ->> 'profile'
                             ELSE i.tool END, '') AS name
          FROM budgets_entry e
          JOIN tenancy_tenant z ON z.id = e.tenant_id
          JOIN LATERAL (
               SELECT n.kind, n.tool, n.body FROM orchestrator_intent n
                WHERE n.tenant_id = %(tenant)s AND n.effect = e.effect_id ORDER BY n.fence DESC LIMIT 1) i
            ON true
         WHERE e.tenant_id = %(tenant)s AND e.run_id = %(run)s AND e.month_id IS NULL
           AND e.cause IN ('settle', 'overrun')) took
 GROUP BY took.day, took.kind, left(took.name, 265)
 ORDER BY took.day, took.kind, left(took.name, 265)
ON CONFLICT (tenant_id, day, workflow, kind, name) DO UPDATE
   SET usd = budgets_dayspend.usd + excluded.usd, calls = budgets_dayspend.calls + excluded.calls"""


def note_end(hand: ClaimedRun, at: datetime, finish: Finish) -> None:
    """Write the figures of a run whose account was just closed. Joins the transaction."""
    values = {
        "tenant": hand.tenant,
        "run": hand.run,
        "workflow": hand.manifest.workflow,
        "code": finish.code.value,
        "at": at,
    }
    cursor = raw_cursor()
    cursor.execute(_FIGURES, values)
    cursor.execute(_SPENT, values)
