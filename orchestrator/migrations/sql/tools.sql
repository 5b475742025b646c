-- Tool servers, and proposals that wait for a second person.

-- A tool server keeps its name and its address, and one that was removed stays removed.
CREATE FUNCTION orchestrator_server_stays() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  RAISE EXCEPTION 'a tool server keeps its name and its address' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER server_stays BEFORE UPDATE ON orchestrator_toolserver FOR EACH ROW
  WHEN (NEW.tenant_id <> OLD.tenant_id OR NEW.id <> OLD.id OR NEW.slug <> OLD.slug OR NEW.kind <> OLD.kind
        OR NEW.address <> OLD.address OR NEW.origin <> OLD.origin OR OLD.removed_at IS NOT NULL)
  EXECUTE FUNCTION orchestrator_server_stays();

-- A proposal is settled once and keeps what it proposed.
CREATE FUNCTION orchestrator_proposal_stays() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  RAISE EXCEPTION 'a proposal is settled once and says what it said' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER proposal_stays BEFORE UPDATE ON orchestrator_policyproposal FOR EACH ROW
  WHEN (OLD.status <> 'open' OR NEW.tenant_id <> OLD.tenant_id OR NEW.id <> OLD.id OR NEW.before <> OLD.before
        OR NEW.digest <> OLD.digest OR NEW.body <> OLD.body OR NEW.reason <> OLD.reason OR NEW.by <> OLD.by
        OR NEW.owner <> OLD.owner OR NEW.at <> OLD.at)
  EXECUTE FUNCTION orchestrator_proposal_stays();
CREATE TRIGGER proposal_stays BEFORE UPDATE ON orchestrator_toolproposal FOR EACH ROW
  WHEN (OLD.status <> 'open' OR NEW.tenant_id <> OLD.tenant_id OR NEW.id <> OLD.id OR NEW.kind <> OLD.kind
        OR NEW.tool <> OLD.tool OR NEW.tag <> OLD.tag OR NEW.body <> OLD.body OR NEW.weaker <> OLD.weaker
        OR NEW.reason <> OLD.reason OR NEW.by <> OLD.by OR NEW.owner <> OLD.owner OR NEW.at <> OLD.at)
  EXECUTE FUNCTION orchestrator_proposal_stays();
