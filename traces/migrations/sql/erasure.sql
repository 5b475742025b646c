-- Content and salts are never deleted; they can only be emptied, by one function.

-- Even the owner may do nothing to a row but empty it: everything else must stay as it was.
CREATE FUNCTION traces_only_erased() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND current_user = 'interlock_owner' THEN
    IF TG_TABLE_NAME = 'traces_payload' THEN
      IF NEW.body IS NULL AND (NEW.tenant_id, NEW.run_id, NEW.digest, NEW.size)
         = (OLD.tenant_id, OLD.run_id, OLD.digest, OLD.size) THEN RETURN NEW; END IF;
    ELSIF NEW.salt IS NULL AND OLD.erased_at IS NULL
         AND (NEW.tenant_id, NEW.run_id) = (OLD.tenant_id, OLD.run_id) THEN RETURN NEW;
    END IF;
  END IF;
  RAISE EXCEPTION '% of % is refused: content can only be erased', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER only_erased BEFORE UPDATE OR DELETE ON traces_payload
  FOR EACH ROW EXECUTE FUNCTION traces_only_erased();
CREATE TRIGGER only_erased BEFORE UPDATE OR DELETE ON traces_salt
  FOR EACH ROW EXECUTE FUNCTION traces_only_erased();

-- Empties the content, the salt and the sealing key of a run of the current tenant; returns how many contents. Row
-- security is forced on the owner too, so it reaches no other tenant's rows.
CREATE FUNCTION erase_payloads(run uuid) RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE traces_salt SET salt = NULL, sealing_key = NULL, erased_at = clock_timestamp()
   WHERE run_id = run AND salt IS NOT NULL
     AND tenant_id = nullif(current_setting('interlock.tenant', true), '')::uuid;
  WITH gone AS (
    UPDATE traces_payload SET body = NULL
     WHERE run_id = run AND body IS NOT NULL
       AND tenant_id = nullif(current_setting('interlock.tenant', true), '')::uuid
    RETURNING 1)
  SELECT count(*) FROM gone
$$;
REVOKE ALL ON FUNCTION erase_payloads(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION erase_payloads(uuid) TO interlock_app;
