"""Runs in front of models: behind an open circuit, and in the line of one that takes so many calls at once
(R-TOOL-22)."""

import django.db.models.deletion
import django.db.models.expressions
from django.db import migrations, models
from django.db.models import Q

import tenancy.db.ids
from tenancy.db.integrity_guards import (
    create_cross_tenant_policy,
    create_definer_function,
    grant_table_rights,
    row_security,
)

TENANT = ("tenant", models.ForeignKey(
    db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="tenancy.tenant",
))  # fmt: skip
ID = ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False))
# A call under way counts while its run's lease lives; a run that was called up has a moment to take its turn.
LIVE = """
 (w.stage = 'called' AND w.until > clock_timestamp()
  OR w.stage = 'calling' AND w.until > clock_timestamp() AND EXISTS (
     SELECT 1 FROM orchestrator_run l WHERE l.id = w.id AND l.fence = w.fence AND l.lease_owner IS NOT NULL
        AND l.lease_until > clock_timestamp()))
"""
WAITS = """
 (w.stage = 'queued' OR w.stage = 'called' AND w.until <= clock_timestamp())
 AND EXISTS (SELECT 1 FROM orchestrator_run q WHERE q.id = w.id AND q.status = 'in_progress')
"""
# Fair across tenants: first who has the fewest calls under way, then who was served longest ago, then who came
# first. Who does not take the turn in time goes to the end.
CALL_UP = f"""
SELECT pg_advisory_xact_lock(hashtextextended(wanted::text, 71));
WITH busy AS (
  SELECT w.tenant_id, count(*) AS calls FROM orchestrator_modelturn w WHERE w.place = wanted AND {LIVE}
   GROUP BY w.tenant_id),
first AS (
  SELECT w.id FROM (
    SELECT w.id, w.tenant_id, w.since, w.most,
           row_number() OVER (PARTITION BY w.tenant_id ORDER BY w.since, w.id) AS turn
      FROM orchestrator_modelturn w WHERE w.place = wanted AND {WAITS}) w
    LEFT JOIN busy ON busy.tenant_id = w.tenant_id
    LEFT JOIN orchestrator_modelserved s ON s.place = wanted AND s.tenant_id = w.tenant_id
   ORDER BY coalesce(busy.calls, 0) + w.turn, s.at NULLS FIRST, w.since, w.id
   LIMIT greatest(0, coalesce((SELECT max(most) FROM orchestrator_modelturn m WHERE m.place = wanted), 1)
                     - coalesce((SELECT sum(calls) FROM busy), 0)::int)),
called AS (
  UPDATE orchestrator_modelturn t SET stage = 'called', since = clock_timestamp(),
         until = clock_timestamp() + interval '15 seconds'
    FROM first WHERE t.id = first.id RETURNING t.id, t.tenant_id),
served AS (
  INSERT INTO orchestrator_modelserved AS s (id, tenant_id, place, at)
  SELECT DISTINCT ON (tenant_id) gen_random_uuid(), tenant_id, wanted, clock_timestamp() FROM called
  ON CONFLICT (tenant_id, place) DO UPDATE SET at = EXCLUDED.at)
SELECT id FROM called
"""
# Who is to be driven: called up in line; behind a circuit that has closed; the one that tries a circuit whose
# cooldown is over; and whoever an emergency stop ends.
CALLED_UP = f"""
SELECT call_up(p.place) FROM (
  SELECT DISTINCT w.place FROM orchestrator_modelturn w WHERE {WAITS} ORDER BY w.place) p;
SELECT r.id FROM orchestrator_run r JOIN (
  SELECT w.id FROM orchestrator_modelturn w WHERE w.stage = 'called' AND w.until > clock_timestamp()
  UNION
  SELECT w.id FROM orchestrator_modelturn w LEFT JOIN orchestrator_circuitrow c ON c.id = w.place
   WHERE w.stage = 'away' AND (c.id IS NULL OR c.state = 'closed')
  UNION
  (SELECT DISTINCT ON (w.place) w.id FROM orchestrator_modelturn w
     JOIN orchestrator_circuitrow c ON c.id = w.place
     JOIN orchestrator_run q ON q.id = w.id AND q.status = 'in_progress'
    WHERE w.stage = 'away' AND c.state <> 'closed' AND c.until <= clock_timestamp()
    ORDER BY w.place, w.since, w.id)
  UNION
  SELECT w.id FROM orchestrator_modelturn w JOIN orchestrator_run q ON q.id = w.id
   WHERE w.stage IN ('away', 'queued') AND EXISTS (
         SELECT 1 FROM orchestrator_emergencystop e WHERE e.lifted_at IS NULL AND (e.scope = 'global'
            OR e.tenant_id = w.tenant_id AND (e.scope = 'tenant'
               OR e.scope = 'workflow' AND e.target = q.workflow)))) due ON due.id = r.id
 WHERE r.status = 'in_progress' AND (r.lease_owner IS NULL OR r.lease_until < clock_timestamp())
 LIMIT least(n, 100)
"""


def seen_by_owner(table: str) -> migrations.RunSQL:
    """The owner's functions look at rows of every tenant."""
    name = "called_up_select"
    return migrations.RunSQL(
        f"CREATE POLICY {name} ON {table} FOR SELECT TO interlock_owner USING (true);",
        f"DROP POLICY {name} ON {table};",
    )


def written_by_owner(table: str) -> migrations.RunSQL:
    """The owner's functions add rows of every tenant."""
    return migrations.RunSQL(
        f"CREATE POLICY crossing_insert ON {table} FOR INSERT TO interlock_owner WITH CHECK (true);",
        f"DROP POLICY crossing_insert ON {table};",
    )


class Migration(migrations.Migration):
    """Two tables, two functions."""

    dependencies = [("orchestrator", "0038_stops_of_tenants")]
    operations = [
        migrations.CreateModel(
            name="ModelTurn",
            fields=[
                ID, ("place", models.UUIDField()), ("stage", models.CharField(max_length=8)),
                ("fence", models.BigIntegerField()), ("most", models.IntegerField()),
                ("since", models.DateTimeField()), ("until", models.DateTimeField(null=True)), TENANT,
            ],
            options={
                "abstract": False,
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="orchestrator_modelturn_of_tenant"),
                    models.CheckConstraint(
                        condition=Q(stage__in=["away", "queued"], until__isnull=True)
                        | Q(stage__in=["called", "calling"], until__gt=django.db.models.expressions.F("since")),
                        name="modelturn_stage_whole",
                    ),
                    models.CheckConstraint(condition=Q(most__gte=1), name="modelturn_most_one"),
                ],
                "indexes": [models.Index(fields=["place", "stage", "since"], name="modelturn_in_front")],
            },
        ),
        migrations.CreateModel(
            name="ModelServed",
            fields=[ID, ("place", models.UUIDField()), ("at", models.DateTimeField()), TENANT],
            options={
                "abstract": False,
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="orchestrator_modelserved_of_tenant"),
                    models.UniqueConstraint(fields=("tenant", "place"), name="modelserved_once"),
                ],
            },
        ),
        *(row_security(f"orchestrator_{table}") for table in ("modelturn", "modelserved")),
        grant_table_rights("orchestrator_modelturn", "SELECT, INSERT, UPDATE, DELETE"),
        grant_table_rights("orchestrator_modelserved", "SELECT"),
        *(
            create_cross_tenant_policy(f"orchestrator_{table}", command)
            for table in ("modelturn", "modelserved")
            for command in ("SELECT", "UPDATE")
        ),
        written_by_owner("orchestrator_modelserved"),
        seen_by_owner("orchestrator_circuitrow"), seen_by_owner("orchestrator_emergencystop"),
        create_definer_function("call_up", "wanted uuid", "SETOF uuid", CALL_UP, volatility="VOLATILE"),
        create_definer_function("called_up_runs", "n integer", "SETOF uuid", CALLED_UP, volatility="VOLATILE"),
    ]  # fmt: skip
