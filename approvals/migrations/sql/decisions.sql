-- Decisions: who may make one, and what must stand in it.

-- Returns whether what this principal does may be the deed of one of those: it is the same principal, or it has an
-- owner, or somebody who was shown its key, in common with them.
CREATE FUNCTION approvals_same_hands(house uuid, principal uuid, owner uuid, principals uuid[], owners uuid[])
RETURNS boolean LANGUAGE sql STABLE SET search_path = pg_catalog AS $$
  SELECT principal = ANY (principals) OR EXISTS (
    (SELECT owner UNION SELECT m.person_id FROM public.tenancy_keymaker m
       WHERE m.tenant_id = house AND m.principal_id = principal)
    INTERSECT
    (SELECT unnest(owners) UNION SELECT m.person_id FROM public.tenancy_keymaker m
       WHERE m.tenant_id = house AND m.principal_id = ANY (principals)))
$$;
REVOKE ALL ON FUNCTION approvals_same_hands(uuid, uuid, uuid, uuid[], uuid[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION approvals_same_hands(uuid, uuid, uuid, uuid[], uuid[]) TO interlock_app;

-- A clarification is the submitter's to answer; on everything else somebody else decides. Either is about the packet
-- that is asked.
CREATE FUNCTION approvals_decision_by_another() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM public.approvals_request
       WHERE tenant_id = NEW.tenant_id AND id = NEW.request_id AND packet_digest = NEW.packet_digest
         AND (kind = 'clarification') = (NEW.kind = 'answer')
         AND (kind = 'clarification') = (public.approvals_same_hands(
               NEW.tenant_id, NEW.principal, NEW.owner, ARRAY[submitter], ARRAY[submitter_owner]))) THEN
    RAISE EXCEPTION 'this decision is not this person''s to make' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER decision_by_another BEFORE INSERT ON approvals_decision
  FOR EACH ROW EXECUTE FUNCTION approvals_decision_by_another();

-- Nobody who had the run, or one before it, begun again decides on it or defers a decision.
CREATE FUNCTION approvals_not_the_retriers() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM public.approvals_request
       WHERE tenant_id = NEW.tenant_id AND id = NEW.request_id AND kind <> 'clarification'
         AND (public.approvals_same_hands(
               NEW.tenant_id, NEW.principal, NEW.owner, retriers, retrier_owners))) THEN
    RAISE EXCEPTION 'this decision is not this person''s to make' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER decision_not_the_retriers BEFORE INSERT ON approvals_decision
  FOR EACH ROW EXECUTE FUNCTION approvals_not_the_retriers();
CREATE TRIGGER deferral_not_the_retriers BEFORE INSERT ON approvals_deferral
  FOR EACH ROW EXECUTE FUNCTION approvals_not_the_retriers();

-- While one person's deferred approval stands nobody else's decision is taken: of two there is one winner.
CREATE FUNCTION approvals_decision_alone() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM public.approvals_deferral
       WHERE tenant_id = NEW.tenant_id AND request_id = NEW.request_id AND fate = 'stands') THEN
    RAISE EXCEPTION 'somebody''s yes to this request stands' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER decision_alone BEFORE INSERT ON approvals_decision
  FOR EACH ROW EXECUTE FUNCTION approvals_decision_alone();

-- A decision that agrees says how many people must. An approval is of the packet, whose quorum the request has; an
-- edit is of arguments of its own, to which all must say the same number.
CREATE FUNCTION approvals_decision_quorum() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF (NEW.kind IN ('approve', 'edit')) <> (coalesce(NEW.quorum, 0) >= 1)
     OR (NEW.arguments IS NULL AND NEW.quorum IS NOT NULL AND NOT EXISTS (SELECT 1 FROM public.approvals_request
           WHERE tenant_id = NEW.tenant_id AND id = NEW.request_id AND greatest(quorum, 1) = NEW.quorum))
     OR EXISTS (SELECT 1 FROM public.approvals_decision
           WHERE tenant_id = NEW.tenant_id AND request_id = NEW.request_id AND quorum <> NEW.quorum
             AND arguments IS NOT DISTINCT FROM NEW.arguments) THEN
    RAISE EXCEPTION 'a word that agrees says how many people must' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER decision_quorum BEFORE INSERT ON approvals_decision
  FOR EACH ROW EXECUTE FUNCTION approvals_decision_quorum();
