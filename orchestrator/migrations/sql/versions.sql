-- A published version of a workflow or a boundary can be retired; nothing else of it changes.
CREATE FUNCTION orchestrator_version_retires() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF TG_OP = 'DELETE' OR (to_jsonb(NEW) - 'retired_at') <> (to_jsonb(OLD) - 'retired_at') THEN
    RAISE EXCEPTION 'a published version can only be retired' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER version_retires BEFORE UPDATE OR DELETE ON orchestrator_workflowversion
  FOR EACH ROW EXECUTE FUNCTION orchestrator_version_retires();
CREATE TRIGGER version_retires BEFORE UPDATE OR DELETE ON orchestrator_boundaryversion
  FOR EACH ROW EXECUTE FUNCTION orchestrator_version_retires();
