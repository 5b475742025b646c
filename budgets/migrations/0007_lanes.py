"""An account may have a parent: a lane's, which draws on what is reserved for it there (R-BUDGET-8)."""

from django.db import migrations, models
from django.db.models import Q

# A lane is opened under a run's account that is open, and is allowed no more of anything that its parent
# limits than its parent holds in reserve.
GUARDS = """
CREATE FUNCTION budgets_lane_has_a_parent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM budgets_account p
      WHERE p.id = NEW.parent_id AND p.tenant_id = NEW.tenant_id AND p.kind = 'run' AND p.closed_at IS NULL) THEN
    RAISE EXCEPTION 'lane % has no open parent %', NEW.id, NEW.parent_id
      USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'budgets_lane_has_a_parent';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER budgets_lane_has_a_parent BEFORE INSERT ON budgets_account FOR EACH ROW
  WHEN (NEW.parent_id IS NOT NULL) EXECUTE FUNCTION budgets_lane_has_a_parent();
CREATE FUNCTION budgets_lane_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'a lane stays with its parent' USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER budgets_lane_stays BEFORE UPDATE ON budgets_account FOR EACH ROW
  WHEN (NEW.parent_id IS DISTINCT FROM OLD.parent_id) EXECUTE FUNCTION budgets_lane_stays();
CREATE FUNCTION budgets_lane_within_parent() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE rich record;
BEGIN
  SELECT n.dimension, n."limit", p.reserved INTO rich
    FROM added n
    JOIN budgets_account a ON a.id = n.account_id AND a.parent_id IS NOT NULL
    JOIN budgets_line p ON p.tenant_id = n.tenant_id AND p.account_id = a.parent_id
                       AND p.dimension = n.dimension AND p."limit" IS NOT NULL
   WHERE n.dimension NOT IN ('retries', 'context_tokens', 'depth', 'transitions')
     AND (n."limit" IS NULL OR n."limit" > p.reserved)
   LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'a lane may not have % of %: its parent holds %', rich."limit", rich.dimension, rich.reserved
      USING ERRCODE = 'check_violation', CONSTRAINT = 'budgets_lane_within_parent';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER budgets_lane_within_parent AFTER INSERT ON budgets_line REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION budgets_lane_within_parent();
"""
GUARDS_AWAY = """
DROP TRIGGER budgets_lane_within_parent ON budgets_line;
DROP FUNCTION budgets_lane_within_parent();
DROP TRIGGER budgets_lane_stays ON budgets_account;
DROP FUNCTION budgets_lane_stays();
DROP TRIGGER budgets_lane_has_a_parent ON budgets_account;
DROP FUNCTION budgets_lane_has_a_parent();
"""


class Migration(migrations.Migration):
    """A column and its guards."""

    dependencies = [("budgets", "0006_tranche_windows")]
    operations = [
        migrations.AddField(model_name="account", name="parent_id", field=models.UUIDField(null=True)),
        migrations.AddConstraint(
            model_name="account",
            constraint=models.CheckConstraint(
                name="budgets_account_lane_of_a_run", condition=Q(parent_id=None) | Q(kind="run")
            ),
        ),
        migrations.RunSQL(GUARDS, GUARDS_AWAY),
    ]
