-- Queues of a tenant, and the memberships that name them.

-- A queue is never deleted and keeps its name.
CREATE FUNCTION tenancy_queue_stays() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  RAISE EXCEPTION '% of tenancy_queue is refused: a queue stays, with its name', TG_OP
    USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER queue_stays BEFORE DELETE ON tenancy_queue
  FOR EACH ROW EXECUTE FUNCTION tenancy_queue_stays();
CREATE TRIGGER queue_never_truncated BEFORE TRUNCATE ON tenancy_queue
  FOR EACH STATEMENT EXECUTE FUNCTION tenancy_queue_stays();
CREATE TRIGGER queue_keeps_name BEFORE UPDATE ON tenancy_queue FOR EACH ROW
  WHEN ((OLD.id, OLD.tenant_id, OLD.name, OLD.created_at)
        IS DISTINCT FROM (NEW.id, NEW.tenant_id, NEW.name, NEW.created_at)
        OR OLD.created_by IS DISTINCT FROM NEW.created_by)
  EXECUTE FUNCTION tenancy_queue_stays();

-- A name has the form of a queue's name.
CREATE FUNCTION tenancy_queue_named() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  RAISE EXCEPTION 'a queue is not called so' USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER queue_named BEFORE INSERT ON tenancy_queue FOR EACH ROW
  WHEN (NEW.name !~ '^[a-z][a-z0-9_-]{0,63}$') EXECUTE FUNCTION tenancy_queue_named();

-- A queue that a membership names, or in which runs themselves ask, is not closed.
CREATE FUNCTION tenancy_queue_closes() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  IF NEW.name IN ('budget', 'reconciliation', 'submitter') THEN
    RAISE EXCEPTION 'runs themselves ask in the queue %', NEW.name USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF EXISTS (SELECT FROM tenancy_membership m WHERE m.tenant_id = NEW.tenant_id AND NEW.name = ANY (m.queues)) THEN
    RAISE EXCEPTION 'a membership names the queue %', NEW.name USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_closes BEFORE UPDATE ON tenancy_queue FOR EACH ROW
  WHEN (OLD.closed_at IS NULL AND NEW.closed_at IS NOT NULL) EXECUTE FUNCTION tenancy_queue_closes();

-- A membership names open queues of its tenant, which are locked so that none is closed meanwhile; or `*` alone; or
-- none.
CREATE FUNCTION tenancy_membership_queues() RETURNS trigger LANGUAGE plpgsql
SET search_path = public, pg_temp AS $$
DECLARE
  found text[];
BEGIN
  SELECT coalesce(array_agg(q.name), '{}') INTO found FROM (
    SELECT name FROM tenancy_queue
     WHERE tenant_id = NEW.tenant_id AND name = ANY (NEW.queues) AND closed_at IS NULL
     ORDER BY name FOR NO KEY UPDATE
  ) q;
  IF NOT NEW.queues::text[] <@ found THEN
    RAISE EXCEPTION 'a membership names open queues of its tenant, or * alone'
      USING ERRCODE = 'foreign_key_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER membership_queues BEFORE INSERT OR UPDATE OF queues, tenant_id ON tenancy_membership
  FOR EACH ROW WHEN (NEW.queues <> '{}' AND NEW.queues <> '{*}')
  EXECUTE FUNCTION tenancy_membership_queues();
