-- Lanes: accounts that draw on what a run's account holds in reserve for them (R-BUDGET-8).

-- A lane is opened under a run's account that is open.
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

-- A lane keeps its parent.
CREATE FUNCTION budgets_lane_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'a lane stays with its parent' USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER budgets_lane_stays BEFORE UPDATE ON budgets_account FOR EACH ROW
  WHEN (NEW.parent_id IS DISTINCT FROM OLD.parent_id) EXECUTE FUNCTION budgets_lane_stays();

-- A lane is allowed no more of anything that its parent limits than its parent holds in reserve. The loop looks up
-- one account at a time: one join over all added lines read every line there is at every admission.
CREATE FUNCTION budgets_lane_within_parent() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TRIGGER budgets_lane_within_parent AFTER INSERT ON budgets_line REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION budgets_lane_within_parent();
