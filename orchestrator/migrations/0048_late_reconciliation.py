"""What became of a change in doubt is said after its run has ended: by whom, of which runs, and how such a
change is looked up (R-TOOL-9, R-SESS-9)."""

from django.db import migrations, models
from django.db.models import Q

from tenancy.db.integrity_guards import create_definer_function

LATE = ("reconciled", "look_up")
# Nobody says of their own run what happened; the rule that the application asks is wider.
GUARD = """
CREATE FUNCTION orchestrator_signal_reconciles() RETURNS trigger LANGUAGE plpgsql
  SET search_path = pg_catalog AS $$
BEGIN
  IF NOT EXISTS (
      SELECT 1 FROM public.orchestrator_run r
        JOIN public.tenancy_principal p ON p.tenant_id = r.tenant_id AND p.id = NEW."by"
       WHERE r.tenant_id = NEW.tenant_id AND r.id = NEW.run_id AND r.finished_at IS NOT NULL
         AND r.submitted_by <> NEW."by" AND r.owner <> p.owner_id) THEN
    RAISE EXCEPTION 'only of an ended run of somebody else it is said what became of its changes'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER signal_reconciles BEFORE INSERT ON orchestrator_runsignal FOR EACH ROW
  WHEN (NEW.kind IN ('reconciled', 'look_up')) EXECUTE FUNCTION orchestrator_signal_reconciles();
"""
UNGUARD = """
DROP TRIGGER signal_reconciles ON orchestrator_runsignal;
DROP FUNCTION orchestrator_signal_reconciles();
"""
# Its run is over and its reservation settled; a person asked for this very look-up, and nobody made it yet.
PERMIT = """
CREATE FUNCTION interlock_late_look_permit(t uuid, r uuid, e text, f bigint) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('interlock.tenant', t::text, true);
  IF NOT EXISTS (SELECT 1 FROM orchestrator_run
      WHERE id = r AND fence = f AND lease_owner IS NOT NULL AND lease_until > clock_timestamp()
        AND finished_at IS NOT NULL) THEN
    RETURN 'fence';
  END IF;
  IF NOT EXISTS (SELECT 1 FROM orchestrator_intent WHERE tenant_id = t AND effect = e AND mutating) THEN
    RETURN 'intent';
  END IF;
  IF NOT EXISTS (SELECT 1 FROM orchestrator_runsignal s WHERE s.run_id = r AND s.kind = 'look_up'
        AND s.payload -> 'change' ->> 'effect' = e
        AND NOT EXISTS (SELECT 1 FROM orchestrator_signalreceipt x WHERE x.id = s.id)) THEN
    RETURN 'not_asked';
  END IF;
  IF EXISTS (SELECT 1 FROM orchestrator_emergencystop s WHERE s.lifted_at IS NULL AND (s.scope = 'global'
      OR (s.tenant_id = t AND (s.scope = 'tenant'
        OR (s.scope = 'workflow' AND s.target = (SELECT workflow FROM orchestrator_run WHERE id = r))
        OR (s.scope = 'tool' AND s.target IN (SELECT tool FROM orchestrator_intent
              WHERE tenant_id = t AND effect = e)))))) THEN
    RETURN 'emergency_stop';
  END IF;
  RETURN 'ok';
END $$;
REVOKE ALL ON FUNCTION interlock_late_look_permit(uuid, uuid, text, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION interlock_late_look_permit(uuid, uuid, text, bigint) TO interlock_app;
"""
# A run that ended long ago is found again for a day after somebody said so.
DUE = """
SELECT due.id FROM (
  SELECT r.id, r.created_at, row_number() OVER (PARTITION BY r.tenant_id ORDER BY r.created_at, r.id) AS turn
    FROM orchestrator_run r
   WHERE (r.lease_owner IS NULL OR r.lease_until < clock_timestamp())
     AND (r.finished_at > clock_timestamp() - interval '1 day' AND EXISTS (
            SELECT 1 FROM orchestrator_runsignal s WHERE s.run_id = r.id
               AND NOT EXISTS (SELECT 1 FROM orchestrator_signalreceipt t WHERE t.id = s.id))
     OR r.id = ANY (ARRAY(
            SELECT s.run_id FROM orchestrator_runsignal s
             WHERE s.kind IN ('reconciled', 'look_up') AND s.at > clock_timestamp() - interval '1 day'
               AND NOT EXISTS (SELECT 1 FROM orchestrator_signalreceipt t WHERE t.id = s.id) LIMIT 100))
     OR r.status IN ('queued', 'in_progress', 'awaiting_gate', 'awaiting_input', 'paused')
     AND (r.status IN ('queued', 'in_progress') AND r.wake_at IS NULL
          OR r.wake_at <= clock_timestamp()
          OR r.lease_until < clock_timestamp()
          OR EXISTS (SELECT 1 FROM orchestrator_runsignal s WHERE s.run_id = r.id
               AND NOT EXISTS (SELECT 1 FROM orchestrator_signalreceipt t WHERE t.id = s.id))))) due
 ORDER BY due.turn, due.created_at LIMIT least(n, 100)
"""


class Migration(migrations.Migration):
    """A guard, a permit, and a sweep that finds such runs."""

    dependencies = [("orchestrator", "0046_queues")]
    operations = [
        migrations.AddIndex(
            model_name="runsignal",
            index=models.Index(fields=["at"], condition=Q(kind__in=LATE), name="signal_after_end"),
        ),
        migrations.RunSQL(GUARD, UNGUARD),
        migrations.RunSQL(PERMIT, "DROP FUNCTION interlock_late_look_permit(uuid, uuid, text, bigint);"),
        migrations.RunSQL("DROP FUNCTION due_runs(integer);", migrations.RunSQL.noop),
        create_definer_function("due_runs", "n integer", "SETOF uuid", DUE, volatility="VOLATILE"),
    ]
