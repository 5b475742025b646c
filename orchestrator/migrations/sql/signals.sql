-- What became of a change in doubt is said after the run has ended, and never by its submitter or their owner; the
-- rule that the application asks is wider (R-TOOL-9).
CREATE FUNCTION orchestrator_signal_reconciles() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog AS $$
BEGIN
  IF NOT EXISTS (
      SELECT 1 FROM public.orchestrator_run r
        JOIN public.tenancy_principal p ON p.tenant_id = r.tenant_id AND p.id = NEW."by"
       WHERE r.tenant_id = NEW.tenant_id AND r.id = NEW.run_id AND r.finished_at IS NOT NULL
         AND r.submitted_by <> NEW."by" AND r.owner <> p.owner_id) THEN
    RAISE EXCEPTION 'only of an ended run of somebody else it is said what became of its changes'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER signal_reconciles BEFORE INSERT ON orchestrator_runsignal FOR EACH ROW
  WHEN (NEW.kind IN ('reconciled', 'look_up')) EXECUTE FUNCTION orchestrator_signal_reconciles();
