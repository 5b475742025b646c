"""What a lane may have is looked up account by account: one join over all added lines read the whole book at
every admission."""

from django.db import migrations

GUARD = """
CREATE OR REPLACE FUNCTION budgets_lane_within_parent() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE lane record; rich record;
BEGIN
  FOR lane IN SELECT DISTINCT n.tenant_id, n.account_id,
        (SELECT a.parent_id FROM budgets_account a WHERE a.id = n.account_id) AS parent_id FROM added n
  LOOP
    CONTINUE WHEN lane.parent_id IS NULL;
    SELECT n.dimension, n."limit", p.reserved INTO rich
      FROM added n
      JOIN budgets_line p ON p.tenant_id = lane.tenant_id AND p.account_id = lane.parent_id
                         AND p.dimension = n.dimension AND p."limit" IS NOT NULL
     WHERE n.account_id = lane.account_id
       AND n.dimension NOT IN ('retries', 'context_tokens', 'depth', 'transitions')
       AND (n."limit" IS NULL OR n."limit" > p.reserved)
     LIMIT 1;
    IF FOUND THEN
      RAISE EXCEPTION 'a lane may not have % of %: its parent holds %',
        rich."limit", rich.dimension, rich.reserved
        USING ERRCODE = 'check_violation', CONSTRAINT = 'budgets_lane_within_parent';
    END IF;
  END LOOP;
  RETURN NULL;
END $$;
"""
BEFORE = """
CREATE OR REPLACE FUNCTION budgets_lane_within_parent() RETURNS trigger LANGUAGE plpgsql AS $$
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
"""


class Migration(migrations.Migration):
    """The function anew; the trigger stays."""

    dependencies = [("budgets", "0008_refusals_and_drifts")]
    operations = [migrations.RunSQL(GUARD, BEFORE)]
