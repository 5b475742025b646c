-- Requests: they wait in a queue of their tenant and are settled once, by enough people.

-- Statements that insert a request of no run (as the benchmarks do) name no retriers.
ALTER TABLE approvals_request
  ALTER COLUMN retriers SET DEFAULT '{}',
  ALTER COLUMN retrier_owners SET DEFAULT '{}';

-- The queue may be closed: a run under way may ask in one that was closed after it was admitted.
ALTER TABLE approvals_request ADD CONSTRAINT approvals_request_queue_of_tenant
  FOREIGN KEY (tenant_id, queue) REFERENCES tenancy_queue (tenant_id, name) DEFERRABLE INITIALLY IMMEDIATE;

-- A request only ever leaves pending, once, and is decided by a decision.
CREATE FUNCTION approvals_request_once() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF TG_OP = 'DELETE' OR OLD.status <> 'pending'
     OR (to_jsonb(NEW) - 'status' - 'settled_at' - 'outcome' - 'granted_action' - 'ended_because')
        <> (to_jsonb(OLD) - 'status' - 'settled_at' - 'outcome' - 'granted_action' - 'ended_because') THEN
    RAISE EXCEPTION 'a request only ever leaves pending, once' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.status = 'decided' AND NOT EXISTS (SELECT 1 FROM public.approvals_decision
       WHERE tenant_id = NEW.tenant_id AND request_id = NEW.id AND kind = NEW.outcome) THEN
    RAISE EXCEPTION 'a request is decided by a decision' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER request_once BEFORE UPDATE OR DELETE ON approvals_request
  FOR EACH ROW EXECUTE FUNCTION approvals_request_once();

-- Fewer people than the quorum of the decision settle nothing.
CREATE FUNCTION approvals_request_enough() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM public.approvals_decision AS d
       JOIN public.approvals_decision AS o ON o.tenant_id = d.tenant_id AND o.request_id = d.request_id
        AND o.kind IN ('approve', 'edit') AND o.arguments IS NOT DISTINCT FROM d.arguments
      WHERE d.tenant_id = NEW.tenant_id AND d.request_id = NEW.id AND d.kind = NEW.outcome
      GROUP BY d.arguments HAVING count(DISTINCT o.owner) >= max(o.quorum)) THEN
    RAISE EXCEPTION 'fewer people agreed than must' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER request_enough BEFORE UPDATE ON approvals_request FOR EACH ROW
  WHEN (NEW.status = 'decided' AND NEW.outcome IN ('approve', 'edit'))
  EXECUTE FUNCTION approvals_request_enough();
