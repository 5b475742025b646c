"""A retry is of the same task, in the same name and of the same graph; and what it asks of people names all
who had its line begun again (R-SESS-9, R-APPR-5)."""

from typing import Final

from django.db import migrations

RETRIES: Final = """
CREATE OR REPLACE FUNCTION orchestrator_run_retries() RETURNS trigger LANGUAGE plpgsql
  SET search_path = pg_catalog AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM public.orchestrator_run
       WHERE tenant_id = NEW.tenant_id AND id = NEW.retry_of_id AND task_id = NEW.task_id {more}
         AND finished_at IS NOT NULL AND terminal_code <> 'SUCCESS' AND record_number >= NEW.retry_record) THEN
    RAISE EXCEPTION 'only an ended run without its result is retried, after one of its records'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
"""
SAME: Final = """AND submitted_by = NEW.submitted_by
         AND owner = NEW.owner AND workflow_version_id = NEW.workflow_version_id"""
# A request of a run that is not there, as benches write them, is one of no retry.
NAMED: Final = """
CREATE FUNCTION approvals_request_names_retriers() RETURNS trigger LANGUAGE plpgsql
  SET search_path = pg_catalog AS $$
DECLARE
  line uuid[];
  owners uuid[];
BEGIN
  WITH RECURSIVE run AS (
    SELECT retry_of_id, retried_by FROM public.orchestrator_run
     WHERE tenant_id = NEW.tenant_id AND id = NEW.run_id
   UNION ALL
    SELECT r.retry_of_id, r.retried_by FROM run JOIN public.orchestrator_run r
        ON r.tenant_id = NEW.tenant_id AND r.id = run.retry_of_id)
  SELECT coalesce(array_agg(run.retried_by), '{}'), coalesce(array_agg(p.owner_id), '{}') INTO line, owners
    FROM run LEFT JOIN public.tenancy_principal p ON p.tenant_id = NEW.tenant_id AND p.id = run.retried_by
   WHERE run.retried_by IS NOT NULL;
  IF NOT (line <@ NEW.retriers AND NEW.retriers <@ line
          AND owners <@ NEW.retrier_owners AND NEW.retrier_owners <@ owners) THEN
    RAISE EXCEPTION 'a request names all who had its run begun again' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER request_names_retriers BEFORE INSERT ON approvals_request
  FOR EACH ROW EXECUTE FUNCTION approvals_request_names_retriers();
"""


class Migration(migrations.Migration):
    """Two guards."""

    dependencies = [("orchestrator", "0032_retries"), ("approvals", "0009_retriers")]
    operations = [
        migrations.RunSQL(RETRIES.format(more=SAME), RETRIES.format(more="")),
        migrations.RunSQL(NAMED, "DROP FUNCTION approvals_request_names_retriers() CASCADE;"),
    ]
