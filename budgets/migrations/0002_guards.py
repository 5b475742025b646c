"""What PostgreSQL itself holds: tenants apart, the ledger for ever, reservations within their limits."""

from django.db import migrations

from tenancy.db.integrity_guards import append_only, grant_table_rights, row_security, same_tenant_key

TABLES = (
    "budgets_account",
    "budgets_line",
    "budgets_tranche",
    "budgets_entry",
    "budgets_tenantceiling",
    "budgets_price",
)
LEDGERS = ("budgets_entry", "budgets_tenantceiling", "budgets_price")

# An update that raises what is reserved may not leave more in use than the limit (R-BUDGET-2). A provider's overrun
# raises `used` alone and passes. The WHEN clauses keep the functions out of the way of every lawful update.
LINES = """
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
CREATE FUNCTION budgets_line_identity() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'a line stays with its account and dimension' USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER budgets_line_stays BEFORE UPDATE ON budgets_line FOR EACH ROW
  WHEN (NEW.account_id <> OLD.account_id OR NEW.dimension <> OLD.dimension OR NEW.tenant_id <> OLD.tenant_id
        OR NEW.id <> OLD.id)
  EXECUTE FUNCTION budgets_line_identity();
-- Rows that change at every commit: room on their page keeps the new version there and the indexes untouched.
ALTER TABLE budgets_line SET (fillfactor = 50);
ALTER TABLE budgets_tranche SET (fillfactor = 50);
"""
LINES_AWAY = """
DROP TRIGGER budgets_line_stays ON budgets_line;
DROP TRIGGER budgets_line_starts_empty ON budgets_line;
DROP TRIGGER budgets_line_within_limit ON budgets_line;
DROP FUNCTION budgets_line_identity();
DROP FUNCTION budgets_line_refuse();
"""


class Migration(migrations.Migration):
    """Row-level security, append-only ledgers, composite keys, the limit of a line."""

    dependencies = [("budgets", "0001_initial")]

    operations = [
        migrations.RunSQL(LINES, LINES_AWAY),
        same_tenant_key("budgets_line", "account_id", "budgets_account"),
        same_tenant_key("budgets_tranche", "run_account_id", "budgets_account"),
        same_tenant_key("budgets_tranche", "day_id", "budgets_account"),
        same_tenant_key("budgets_tranche", "month_id", "budgets_account"),
        *[append_only(table) for table in LEDGERS],
        *[row_security(table) for table in TABLES],
        *[
            grant_table_rights(table, "SELECT, INSERT" if table in LEDGERS else "SELECT, INSERT, UPDATE")
            for table in TABLES
        ],
    ]
