-- Deferred approvals, which can be taken back for some seconds.

-- A deferral is made by another than the submitter, of a low risk, on what is asked and still open; it ends once, and
-- nothing else of it changes.
CREATE FUNCTION approvals_deferral_once() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.fate <> 'stands' OR NEW.kind NOT IN ('approve', 'edit') OR NEW.effective_at <= NEW.at
       OR NEW.effective_at > NEW.at + interval '10 seconds'
       OR NOT EXISTS (SELECT 1 FROM public.approvals_request
            WHERE tenant_id = NEW.tenant_id AND id = NEW.request_id AND run_id = NEW.run_id
              AND packet_digest = NEW.packet_digest AND kind = 'action' AND status = 'pending'
              AND risk IN ('read_only', 'local_write')
              AND submitter <> NEW.principal AND submitter_owner <> NEW.owner) THEN
      RAISE EXCEPTION 'this yes is not to be kept back' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
  END IF;
  IF TG_OP = 'DELETE' OR OLD.fate <> 'stands'
     OR (to_jsonb(NEW) - 'fate' - 'ended_at' - 'ended_by' - 'ended_because')
        <> (to_jsonb(OLD) - 'fate' - 'ended_at' - 'ended_by' - 'ended_because') THEN
    RAISE EXCEPTION 'a yes that is kept back only ever ends, once'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER deferral_once BEFORE INSERT OR UPDATE OR DELETE ON approvals_deferral
  FOR EACH ROW EXECUTE FUNCTION approvals_deferral_once();

-- Returns runs with deferrals that are due. Tenants take turns, and within one the order is random: a deferral that
-- cannot be taken must not stand before the others for ever.
CREATE FUNCTION deferred_runs(n integer) RETURNS SETOF uuid
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
SELECT run_id FROM (
  SELECT run_id, row_number() OVER (PARTITION BY tenant_id ORDER BY random()) AS turn
    FROM (SELECT DISTINCT tenant_id, run_id FROM approvals_deferral
           WHERE fate = 'stands' AND effective_at <= clock_timestamp()) AS due
) AS turns ORDER BY turn, random() LIMIT least(n, 100)
$$;
REVOKE ALL ON FUNCTION deferred_runs(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION deferred_runs(integer) TO interlock_app;
