-- A key that reaches some runs alone sees no others, nor what hangs on them (R-SEC-11).
--
-- The transaction says whose runs and of which workflows (tenancy.db.tenant_context); where it says nothing, all runs
-- of the tenant are meant, and the runs of the rows are not looked at. Events, contents and amounts are found by their
-- run, which is not there.

CREATE POLICY within_reach ON orchestrator_run AS RESTRICTIVE TO interlock_app USING (
  (coalesce(current_setting('interlock.reach_principal', true), '') = ''
   OR submitted_by::text = coalesce(current_setting('interlock.reach_principal', true), ''))
  AND (coalesce(current_setting('interlock.reach_workflows', true), '') = ''
   OR workflow LIKE ANY (
        string_to_array(coalesce(current_setting('interlock.reach_workflows', true), ''), ','))));

CREATE POLICY within_reach ON approvals_request AS RESTRICTIVE FOR SELECT TO interlock_app USING (
  (coalesce(current_setting('interlock.reach_principal', true), '') = ''
   AND coalesce(current_setting('interlock.reach_workflows', true), '') = '')
  OR EXISTS (SELECT FROM orchestrator_run r
              WHERE r.tenant_id = approvals_request.tenant_id AND r.id = approvals_request.run_id));

CREATE POLICY within_reach ON orchestrator_reviewitem AS RESTRICTIVE FOR SELECT TO interlock_app USING (
  (coalesce(current_setting('interlock.reach_principal', true), '') = ''
   AND coalesce(current_setting('interlock.reach_workflows', true), '') = '')
  OR EXISTS (SELECT FROM orchestrator_run r
              WHERE r.tenant_id = orchestrator_reviewitem.tenant_id AND r.id = orchestrator_reviewitem.run_id));

CREATE POLICY within_reach ON orchestrator_memoryproposal AS RESTRICTIVE FOR SELECT TO interlock_app USING (
  (coalesce(current_setting('interlock.reach_principal', true), '') = ''
   AND coalesce(current_setting('interlock.reach_workflows', true), '') = '')
  OR EXISTS (SELECT FROM orchestrator_run r
              WHERE r.tenant_id = orchestrator_memoryproposal.tenant_id
                AND r.id = orchestrator_memoryproposal.run_id));
