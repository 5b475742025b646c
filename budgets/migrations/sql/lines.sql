-- Lines of accounts: what is reserved stays within the limit (R-BUDGET-2).

-- The WHEN clauses keep the function out of the way of every lawful update. A provider's overrun raises `used` alone
-- and passes.
CREATE FUNCTION budgets_line_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'line % of account %: % in use and reserved exceed the limit of %',
    NEW.dimension, NEW.account_id, NEW.used + NEW.reserved, NEW."limit"
    USING ERRCODE = 'check_violation', CONSTRAINT = 'budgets_line_within_limit';
END $$;
CREATE TRIGGER budgets_line_within_limit BEFORE UPDATE ON budgets_line FOR EACH ROW
  WHEN (NEW.reserved > OLD.reserved AND NEW.used + NEW.reserved > NEW."limit")
  EXECUTE FUNCTION budgets_line_refuse();
CREATE TRIGGER budgets_line_starts_empty BEFORE INSERT ON budgets_line FOR EACH ROW
  WHEN (NEW.used <> 0 OR NEW.reserved <> 0)
  EXECUTE FUNCTION budgets_line_refuse();

-- A line keeps its account and dimension. A trigger's condition is read from its stored text in every statement that
-- it belongs to, so it belongs to those alone that name one of these columns.
CREATE FUNCTION budgets_line_identity() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'a line stays with its account and dimension' USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER budgets_line_stays BEFORE UPDATE OF account_id, dimension, tenant_id, id ON budgets_line
  FOR EACH ROW
  WHEN (NEW.account_id <> OLD.account_id OR NEW.dimension <> OLD.dimension
        OR NEW.tenant_id <> OLD.tenant_id OR NEW.id <> OLD.id)
  EXECUTE FUNCTION budgets_line_identity();

-- These rows change at every commit: room on their page keeps the new version there and the indexes untouched.
ALTER TABLE budgets_line SET (fillfactor = 50);
ALTER TABLE budgets_tranche SET (fillfactor = 50);
