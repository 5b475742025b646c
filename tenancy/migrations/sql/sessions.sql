-- Browsers' sessions, failed sign-ins and known devices. These tables belong to a person, not to a tenant; the auditor
-- sees none of them.

GRANT SELECT, INSERT, DELETE, UPDATE (digest, data, person_id, last_seen_at, address, browser)
  ON tenancy_browsersession TO interlock_app;
GRANT SELECT, INSERT, DELETE, UPDATE (lifted_at) ON tenancy_failedsignin TO interlock_app;
GRANT SELECT, INSERT, DELETE, UPDATE (last_used_at, address, browser) ON tenancy_knowndevice TO interlock_app;

-- What a tenant has of a session is deleted with it by the foreign key: row security does not keep that back.
ALTER TABLE tenancy_tenantsession ADD CONSTRAINT tenancy_tenantsession_session_id_goes
  FOREIGN KEY (session_id) REFERENCES tenancy_browsersession (id) ON DELETE CASCADE;

-- A session begins when its person signs in, and never changes hands.
CREATE FUNCTION tenancy_session_begins() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF OLD.person_id IS NOT NULL THEN
    RAISE EXCEPTION 'a session never changes hands' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  NEW.started_at := clock_timestamp();
  NEW.last_seen_at := clock_timestamp();
  RETURN NEW;
END $$;
CREATE TRIGGER session_begins BEFORE UPDATE ON tenancy_browsersession FOR EACH ROW
  WHEN (OLD.person_id IS DISTINCT FROM NEW.person_id) EXECUTE FUNCTION tenancy_session_begins();

-- A session that was ended in a tenant stays ended there.
CREATE FUNCTION tenancy_session_stays_ended() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  RAISE EXCEPTION 'a session that was ended stays so' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER session_stays_ended BEFORE UPDATE ON tenancy_tenantsession FOR EACH ROW
  WHEN (OLD.ended_at IS NOT NULL) EXECUTE FUNCTION tenancy_session_stays_ended();
