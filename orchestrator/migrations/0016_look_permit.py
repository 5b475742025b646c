"""A look-up asks the database before it goes out, like every call (R-BUDGET-17)."""

from django.db import migrations

# What is looked up is an effect in flight whose sender may be dead: its intent may be of an older fence and
# past its deadline, but it was committed, and its reservation is open.
PERMIT = """
CREATE FUNCTION interlock_look_permit(t uuid, r uuid, e text, f bigint) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('interlock.tenant', t::text, true);
  IF NOT EXISTS (SELECT 1 FROM orchestrator_run
      WHERE id = r AND fence = f AND lease_owner IS NOT NULL AND lease_until > clock_timestamp()) THEN
    RETURN 'fence';
  END IF;
  IF NOT EXISTS (SELECT 1 FROM orchestrator_intent WHERE tenant_id = t AND effect = e AND run_id = r) THEN
    RETURN 'intent';
  END IF;
  IF NOT EXISTS (SELECT 1 FROM budgets_entry WHERE tenant_id = t AND effect_id = e AND cause = 'reserve')
     OR EXISTS (SELECT 1 FROM budgets_entry
                 WHERE tenant_id = t AND effect_id = e AND cause IN ('settle', 'release')) THEN
    RETURN 'reservation';
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
REVOKE ALL ON FUNCTION interlock_look_permit(uuid, uuid, text, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION interlock_look_permit(uuid, uuid, text, bigint) TO interlock_app;
"""


class Migration(migrations.Migration):
    """One function."""

    dependencies = [("orchestrator", "0015_drifted")]
    operations = [
        migrations.RunSQL(PERMIT, "DROP FUNCTION interlock_look_permit(uuid, uuid, text, bigint);"),
    ]
