"""Guards of the orchestrator: tenants apart, versions and intents for ever, legal moves only, and what crosses tenants."""

from django.db import migrations

from orchestrator.core.domain.status_transitions import enumerate_transitions
from tenancy.db.integrity_guards import (
    append_only,
    create_cross_tenant_policy,
    create_definer_function,
    grant_table_rights,
    grant_sequence,
    row_security,
    same_tenant_key,
)

PUBLISHED = (
    "boundaryversion",
    "toolversion",
    "promptversion",
    "registryversion",
    "pinset",
    "manifestrow",
    "task",
)
APPENDED = ("runsignal", "signalreceipt", "intent", "dispatch")
LEGAL = ", ".join(f"('{source}','{target}')" for source, target in enumerate_transitions())
MOVES = f"""
CREATE FUNCTION orchestrator_run_moves() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF (OLD.status, NEW.status) NOT IN ({LEGAL}) THEN
    RAISE EXCEPTION 'a run cannot go from % to %', OLD.status, NEW.status
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER run_moves BEFORE UPDATE ON orchestrator_run FOR EACH ROW
  WHEN (NEW.status IS DISTINCT FROM OLD.status) EXECUTE FUNCTION orchestrator_run_moves();
CREATE FUNCTION orchestrator_run_stays() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  RAISE EXCEPTION 'a run keeps what it was admitted with' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER run_stays BEFORE UPDATE ON orchestrator_run FOR EACH ROW
  WHEN (NEW.tenant_id <> OLD.tenant_id OR NEW.id <> OLD.id OR NEW.task_id <> OLD.task_id
        OR NEW.workflow_version_id <> OLD.workflow_version_id OR NEW.manifest_digest <> OLD.manifest_digest
        OR NEW.submitted_by <> OLD.submitted_by OR NEW.owner <> OLD.owner OR NEW.fence < OLD.fence
        OR NEW.version < OLD.version OR NEW.record_number < OLD.record_number)
  EXECUTE FUNCTION orchestrator_run_stays();
ALTER TABLE orchestrator_run SET (fillfactor = 70);
CREATE FUNCTION orchestrator_version_retires() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF TG_OP = 'DELETE' OR (to_jsonb(NEW) - 'retired_at') <> (to_jsonb(OLD) - 'retired_at') THEN
    RAISE EXCEPTION 'a published version can only be retired' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER version_retires BEFORE UPDATE OR DELETE ON orchestrator_workflowversion
  FOR EACH ROW EXECUTE FUNCTION orchestrator_version_retires();
"""
PERMIT = """
CREATE FUNCTION interlock_permit(t uuid, r uuid, e text, f bigint) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('interlock.tenant', t::text, true);
  IF NOT EXISTS (SELECT 1 FROM orchestrator_run
      WHERE id = r AND fence = f AND lease_owner IS NOT NULL AND lease_until > clock_timestamp()) THEN
    RETURN 'fence';
  END IF;
  IF NOT EXISTS (SELECT 1 FROM orchestrator_intent
      WHERE tenant_id = t AND effect = e AND run_id = r AND fence = f AND deadline > clock_timestamp()) THEN
    RETURN 'intent';
  END IF;
  IF NOT EXISTS (SELECT 1 FROM budgets_entry WHERE tenant_id = t AND effect_id = e AND cause = 'reserve')
     OR EXISTS (SELECT 1 FROM budgets_entry WHERE tenant_id = t AND effect_id = e AND cause IN ('settle', 'release')) THEN
    RETURN 'reservation';
  END IF;
  IF EXISTS (SELECT 1 FROM orchestrator_emergencystop s WHERE s.lifted_at IS NULL AND (s.scope = 'global'
      OR (s.tenant_id = t AND (s.scope = 'tenant'
        OR (s.scope = 'workflow' AND s.target = (SELECT workflow FROM orchestrator_run WHERE id = r))
        OR (s.scope = 'tool' AND s.target = (SELECT tool FROM orchestrator_intent
              WHERE tenant_id = t AND effect = e AND fence = f)))))) THEN
    RETURN 'emergency_stop';
  END IF;
  RETURN 'ok';
END $$;
REVOKE ALL ON FUNCTION interlock_permit(uuid, uuid, text, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION interlock_permit(uuid, uuid, text, bigint) TO interlock_app;
"""
DUE = """
SELECT r.id FROM orchestrator_run r
 WHERE (r.lease_owner IS NULL OR r.lease_until < clock_timestamp())
   AND (r.finished_at > clock_timestamp() - interval '1 day' AND EXISTS (
          SELECT 1 FROM orchestrator_runsignal s WHERE s.run_id = r.id
             AND NOT EXISTS (SELECT 1 FROM orchestrator_signalreceipt t WHERE t.id = s.id))
   OR r.status IN ('queued', 'in_progress', 'awaiting_gate', 'awaiting_input', 'paused')
   AND (r.status IN ('queued', 'in_progress') AND r.wake_at IS NULL
        OR r.wake_at <= clock_timestamp()
        OR r.lease_until < clock_timestamp()
        OR EXISTS (SELECT 1 FROM orchestrator_runsignal s WHERE s.run_id = r.id
             AND NOT EXISTS (SELECT 1 FROM orchestrator_signalreceipt t WHERE t.id = s.id))))
 ORDER BY r.created_at LIMIT least(n, 100)
"""
RENEW = """
UPDATE orchestrator_run SET lease_until = clock_timestamp() + make_interval(secs => seconds)
 WHERE lease_owner = worker AND lease_until > clock_timestamp() - interval '1 minute' RETURNING id
"""


class Migration(migrations.Migration):
    """Guards after the tables."""

    dependencies = [
        ("orchestrator", "0001_initial"), ("tenancy", "0002_guards"), ("budgets", "0002_guards"),
        ("approvals", "0002_guards"), ("traces", "0002_guards"),
    ]  # fmt: skip
    operations = [
        *(row_security(f"orchestrator_{table}") for table in (*PUBLISHED, *APPENDED, "run", "workflowversion")),
        *(append_only(f"orchestrator_{table}") for table in (*PUBLISHED, *APPENDED)),
        *(grant_table_rights(f"orchestrator_{table}", "SELECT, INSERT") for table in (*PUBLISHED, *APPENDED)),
        grant_table_rights("orchestrator_workflowversion", "SELECT, INSERT, UPDATE"),
        grant_table_rights("orchestrator_run", "SELECT, INSERT, UPDATE"),
        grant_table_rights("orchestrator_emergencystop", "SELECT, INSERT, UPDATE"),
        *(grant_sequence(f"orchestrator_{table}_id_seq") for table in ("runsignal", "intent")),
        migrations.RunSQL(MOVES, migrations.RunSQL.noop),
        migrations.RunSQL(PERMIT, "DROP FUNCTION interlock_permit(uuid, uuid, text, bigint);"),
        same_tenant_key("orchestrator_run", "task_id", "orchestrator_task"),
        same_tenant_key("orchestrator_run", "workflow_version_id", "orchestrator_workflowversion"),
        same_tenant_key("orchestrator_runsignal", "run_id", "orchestrator_run"),
        same_tenant_key("orchestrator_dispatch", "run_id", "orchestrator_run"),
        create_cross_tenant_policy("orchestrator_run", "SELECT"), create_cross_tenant_policy("orchestrator_run", "UPDATE"),
        create_cross_tenant_policy("orchestrator_runsignal", "SELECT"), create_cross_tenant_policy("orchestrator_signalreceipt", "SELECT"),
        create_definer_function("tenant_of_run", "wanted uuid", "uuid", "SELECT tenant_id FROM orchestrator_run WHERE id = wanted"),
        create_definer_function("due_runs", "n integer", "SETOF uuid", DUE, volatility="VOLATILE"),
        create_definer_function("renew_leases", "worker text, seconds double precision", "SETOF uuid", RENEW, volatility="VOLATILE"),
    ]  # fmt: skip
