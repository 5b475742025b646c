-- Messages to endpoints: which tenants have some to send, and how old ones are deleted.

-- Returns tenants with deliveries that are due, or with an endpoint whose end is to be told.
CREATE FUNCTION tenants_with_webhooks(n integer) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
SELECT tenant_id FROM (
  SELECT d.tenant_id, d.next_at AS at
    FROM tenancy_webhookdelivery d JOIN tenancy_webhook w ON w.id = d.webhook_id
   WHERE d.state = 'waiting' AND d.next_at <= clock_timestamp() AND w.off_at IS NULL AND w.removed_at IS NULL
  UNION ALL
  SELECT tenant_id, tell_at FROM tenancy_webhook
   WHERE off_at IS NOT NULL AND told_at IS NULL AND tell_at <= clock_timestamp() AND removed_at IS NULL
) AS due GROUP BY tenant_id ORDER BY min(at) LIMIT least(n, 1000)
$$;
REVOKE ALL ON FUNCTION tenants_with_webhooks(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_with_webhooks(integer) TO interlock_app;

-- Messages and attempts are never changed; even the owner's function deletes nothing young.
CREATE FUNCTION tenancy_only_forgotten() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF TG_OP = 'DELETE' AND current_user = 'interlock_owner'
     AND OLD.at < clock_timestamp() - interval '12 hours' THEN RETURN OLD; END IF;
  RAISE EXCEPTION '% of % is refused: what is old is forgotten, by the days that are set', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER only_forgotten BEFORE UPDATE OR DELETE ON tenancy_webhookmessage
  FOR EACH ROW EXECUTE FUNCTION tenancy_only_forgotten();
CREATE TRIGGER only_forgotten BEFORE UPDATE OR DELETE ON tenancy_webhookattempt
  FOR EACH ROW EXECUTE FUNCTION tenancy_only_forgotten();

-- Deletes at most so many ended deliveries of the current tenant, with their attempts and with messages that no
-- delivery needs any more; returns how many. The days are those that administrators have set, 90 without a setting:
-- nobody passes them in. A delivery that still waits is never deleted, nor one that somebody sends at this moment.
CREATE FUNCTION forget_webhooks(most integer) RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
WITH here AS (SELECT nullif(current_setting('interlock.tenant', true), '')::uuid AS id),
kept AS (
  SELECT make_interval(days => coalesce((SELECT k.days FROM tenancy_webhookkeeping k, here
           WHERE k.tenant_id = here.id ORDER BY k.version DESC LIMIT 1), 90)) AS long),
old AS (
  SELECT d.id, d.message_id FROM tenancy_webhookdelivery d, here, kept
   WHERE d.tenant_id = here.id AND d.state <> 'waiting' AND d.done_at < clock_timestamp() - kept.long
   ORDER BY d.done_at LIMIT least(most, 1000) FOR UPDATE OF d SKIP LOCKED),
tries AS (
  DELETE FROM tenancy_webhookattempt a USING old, here
   WHERE a.tenant_id = here.id AND a.delivery_id = old.id),
gone AS (
  DELETE FROM tenancy_webhookdelivery d USING old, here
   WHERE d.tenant_id = here.id AND d.id = old.id RETURNING d.id),
unread AS (
  DELETE FROM tenancy_webhookmessage m USING here
   WHERE m.tenant_id = here.id AND m.id IN (SELECT message_id FROM old)
     AND NOT EXISTS (SELECT FROM tenancy_webhookdelivery d
                      WHERE d.tenant_id = here.id AND d.message_id = m.id
                        AND d.id NOT IN (SELECT id FROM old)))
SELECT count(*) FROM gone
$$;
REVOKE ALL ON FUNCTION forget_webhooks(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION forget_webhooks(integer) TO interlock_app;
