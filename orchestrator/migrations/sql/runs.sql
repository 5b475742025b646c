-- Runs: they begin in tenants that are not suspended, move between statuses as core allows, and keep what they were
-- admitted with.

-- A run changes at every commit: room on its page keeps the new version there and the indexes untouched.
ALTER TABLE orchestrator_run SET (fillfactor = 70);
GRANT USAGE ON SEQUENCE orchestrator_intent_id_seq, orchestrator_runsignal_id_seq TO interlock_app;

-- The tenant's key is locked as a foreign key's check locks it, and a suspension locks the row against that: of the
-- two, whichever is second sees the first.
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

-- The changes of status that one commit may make (orchestrator/core/domain/status_transitions.py; a test compares the
-- two).
CREATE FUNCTION orchestrator_run_moves() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF (OLD.status, NEW.status) NOT IN (
    ('queued','in_progress'), ('queued','awaiting_gate'), ('queued','awaiting_input'), ('queued','paused'),
    ('queued','completed'), ('queued','failed'), ('queued','expired'), ('queued','rejected'),
    ('queued','cancelled'),
    ('in_progress','awaiting_gate'), ('in_progress','awaiting_input'), ('in_progress','paused'),
    ('in_progress','completed'), ('in_progress','failed'), ('in_progress','expired'),
    ('in_progress','rejected'), ('in_progress','cancelled'),
    ('awaiting_gate','in_progress'), ('awaiting_gate','awaiting_input'), ('awaiting_gate','paused'),
    ('awaiting_gate','completed'), ('awaiting_gate','failed'), ('awaiting_gate','expired'),
    ('awaiting_gate','rejected'), ('awaiting_gate','cancelled'),
    ('awaiting_input','in_progress'), ('awaiting_input','awaiting_gate'), ('awaiting_input','paused'),
    ('awaiting_input','completed'), ('awaiting_input','failed'), ('awaiting_input','expired'),
    ('awaiting_input','rejected'), ('awaiting_input','cancelled'),
    ('paused','in_progress'), ('paused','awaiting_gate'), ('paused','awaiting_input'), ('paused','completed'),
    ('paused','failed'), ('paused','expired'), ('paused','rejected'), ('paused','cancelled')
  ) THEN
    RAISE EXCEPTION 'a run cannot go from % to %', OLD.status, NEW.status
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER run_moves BEFORE UPDATE ON orchestrator_run FOR EACH ROW
  WHEN (NEW.status IS DISTINCT FROM OLD.status) EXECUTE FUNCTION orchestrator_run_moves();

-- A trigger's condition is read from its stored text in every statement that it belongs to: one condition over all of
-- these columns cost a commit more than its update. So there are three triggers, each only for statements that name
-- one of its columns.
CREATE FUNCTION orchestrator_run_stays() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  RAISE EXCEPTION 'a run keeps what it was admitted with' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER run_stays
  BEFORE UPDATE OF tenant_id, id, task_id, workflow_version_id, manifest_digest, submitted_by, owner
  ON orchestrator_run FOR EACH ROW
  WHEN (NEW.tenant_id <> OLD.tenant_id OR NEW.id <> OLD.id OR NEW.task_id <> OLD.task_id
        OR NEW.workflow_version_id <> OLD.workflow_version_id OR NEW.manifest_digest <> OLD.manifest_digest
        OR NEW.submitted_by <> OLD.submitted_by OR NEW.owner <> OLD.owner)
  EXECUTE FUNCTION orchestrator_run_stays();
CREATE TRIGGER run_goes_on BEFORE UPDATE OF fence, version, record_number ON orchestrator_run FOR EACH ROW
  WHEN (NEW.fence < OLD.fence OR NEW.version < OLD.version OR NEW.record_number < OLD.record_number)
  EXECUTE FUNCTION orchestrator_run_stays();
CREATE TRIGGER run_began BEFORE UPDATE OF retry_of_id, retry_record, retried_by, retry_key ON orchestrator_run
  FOR EACH ROW
  WHEN (NEW.retry_of_id IS DISTINCT FROM OLD.retry_of_id OR NEW.retry_record IS DISTINCT FROM OLD.retry_record
        OR NEW.retried_by IS DISTINCT FROM OLD.retried_by OR NEW.retry_key IS DISTINCT FROM OLD.retry_key)
  EXECUTE FUNCTION orchestrator_run_stays();

-- Returns the tenant of a run.
CREATE FUNCTION tenant_of_run(wanted uuid) RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
SELECT tenant_id FROM orchestrator_run WHERE id = wanted
$$;
REVOKE ALL ON FUNCTION tenant_of_run(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenant_of_run(uuid) TO interlock_app;
