"""Runs whose worker has died, told by the lock its lease names: their leases need not run out (R-SESS-2)."""

from django.db import migrations

from tenancy.db.integrity_guards import create_definer_function

ABANDONED = r"""
WITH leased AS MATERIALIZED (
  SELECT r.id, substring(r.lease_owner from ':lock:([0-9]{1,18})$')::bigint AS number
    FROM orchestrator_run r
   WHERE r.status IN ('queued', 'in_progress', 'awaiting_gate', 'awaiting_input', 'paused')
     AND r.lease_until > clock_timestamp()),
gone AS MATERIALIZED (
  SELECT number FROM (SELECT DISTINCT number FROM leased WHERE number IS NOT NULL) named
   WHERE NOT interlock_lock_is_held(number))
SELECT leased.id FROM leased JOIN gone USING (number) LIMIT least(n, 100)
"""


class Migration(migrations.Migration):
    """One function that crosses tenants and gives ids."""

    dependencies = [("orchestrator", "0039_model_lines"), ("tenancy", "0010_process_lock")]
    operations = [
        # The owner of the functions that cross tenants looks at locks, too.
        migrations.RunSQL(
            "GRANT EXECUTE ON FUNCTION interlock_lock_is_held(bigint) TO interlock_owner;",
            migrations.RunSQL.noop,
        ),
        create_definer_function(
            "abandoned_runs", "n integer", "SETOF uuid", ABANDONED, volatility="VOLATILE"
        ),
    ]
