-- Retries: a run is begun again after one of its records (R-SESS-9).

-- A retry is of a run that has ended without its result, of the same task, in the same name and of the same graph.
CREATE FUNCTION orchestrator_run_retries() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM public.orchestrator_run
       WHERE tenant_id = NEW.tenant_id AND id = NEW.retry_of_id AND task_id = NEW.task_id
         AND submitted_by = NEW.submitted_by
         AND owner = NEW.owner AND workflow_version_id = NEW.workflow_version_id
         AND finished_at IS NOT NULL AND terminal_code <> 'SUCCESS' AND record_number >= NEW.retry_record) THEN
    RAISE EXCEPTION 'only an ended run without its result is retried, after one of its records'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER run_retries BEFORE INSERT ON orchestrator_run FOR EACH ROW
  WHEN (NEW.retry_of_id IS NOT NULL) EXECUTE FUNCTION orchestrator_run_retries();

-- A request names everybody who had its run, or one before it, begun again. A request of a run that does not exist,
-- as benchmarks write them, is of no retry.
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
