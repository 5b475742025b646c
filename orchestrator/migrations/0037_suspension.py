"""No run begins in a suspended tenant, however late the suspension comes (R-SEC-10)."""

from django.db import migrations

# The row's key is locked as a foreign key's check locks it, and a suspension locks the row against that: of the
# two, whichever is second sees the first.
REFUSED = """
CREATE FUNCTION interlock_refuse_in_suspended() RETURNS trigger LANGUAGE plpgsql
SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM 1 FROM tenancy_tenant WHERE id = NEW.tenant_id AND suspended_at IS NULL FOR KEY SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the tenant is suspended' USING ERRCODE = 'IL002';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER not_in_suspended BEFORE INSERT ON orchestrator_run
  FOR EACH ROW EXECUTE FUNCTION interlock_refuse_in_suspended();
"""
TAKEN = """
DROP TRIGGER not_in_suspended ON orchestrator_run;
DROP FUNCTION interlock_refuse_in_suspended();
"""


class Migration(migrations.Migration):
    """One trigger."""

    dependencies = [("orchestrator", "0036_within_reach"), ("tenancy", "0013_suspension")]
    operations = [migrations.RunSQL(REFUSED, TAKEN)]
