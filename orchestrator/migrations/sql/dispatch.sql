-- Dispatch: which runs are to be driven next, across tenants; each function returns ids.

-- Returns the run whose turn it is (R-BUDGET-11): a skip scan over the tenants that have anything ready, the oldest
-- run of each, and of these the one whose tenant has the fewest at work. Runs that the caller has taken and that are
-- still queued count as at work; `share` is the most that the caller takes of one tenant.
CREATE FUNCTION next_run(taken uuid[], share integer) RETURNS SETOF uuid
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
WITH RECURSIVE house AS (
  (SELECT tenant_id FROM orchestrator_run WHERE status IN ('queued', 'in_progress') AND wake_at IS NULL
    ORDER BY tenant_id LIMIT 1)
  UNION ALL
  SELECT (SELECT r.tenant_id FROM orchestrator_run r
           WHERE r.status IN ('queued', 'in_progress') AND r.wake_at IS NULL AND r.tenant_id > h.tenant_id
           ORDER BY r.tenant_id LIMIT 1)
    FROM house h WHERE h.tenant_id IS NOT NULL),
mine AS (
  SELECT tenant_id, count(*) AS runs, count(*) FILTER (WHERE status = 'queued') AS waiting
    FROM orchestrator_run WHERE id = ANY(taken) GROUP BY tenant_id)
SELECT first.id
  FROM house h
 CROSS JOIN LATERAL (
       SELECT r.id, r.created_at FROM orchestrator_run r
        WHERE r.tenant_id = h.tenant_id AND r.status IN ('queued', 'in_progress') AND r.wake_at IS NULL
          AND (r.lease_owner IS NULL OR r.lease_until < clock_timestamp()) AND NOT r.id = ANY(taken)
        ORDER BY r.created_at, r.id LIMIT 1) first
 CROSS JOIN LATERAL (
       SELECT count(*) AS runs FROM orchestrator_run w
        WHERE w.tenant_id = h.tenant_id AND w.status = 'in_progress') busy
 CROSS JOIN LATERAL (
       SELECT max(s.started_at) AS at FROM orchestrator_run s WHERE s.tenant_id = h.tenant_id) begun
  LEFT JOIN mine ON mine.tenant_id = h.tenant_id
 WHERE h.tenant_id IS NOT NULL AND coalesce(mine.runs, 0) < share
 ORDER BY busy.runs + coalesce(mine.waiting, 0), begun.at NULLS FIRST, first.created_at, first.id
 LIMIT 1
$$;
REVOKE ALL ON FUNCTION next_run(uuid[], integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION next_run(uuid[], integer) TO interlock_app;

-- Returns runs that are due and that nobody holds; tenants take turns. A run that has ended is found for a day after
-- its end, or after somebody said what became of a change, while it has signals without a receipt.
CREATE FUNCTION due_runs(n integer) RETURNS SETOF uuid
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
SELECT due.id FROM (
  SELECT r.id, r.created_at, row_number() OVER (PARTITION BY r.tenant_id ORDER BY r.created_at, r.id) AS turn
    FROM orchestrator_run r
   WHERE (r.lease_owner IS NULL OR r.lease_until < clock_timestamp())
     AND (r.finished_at > clock_timestamp() - interval '1 day' AND EXISTS (
            SELECT 1 FROM orchestrator_runsignal s WHERE s.run_id = r.id
               AND NOT EXISTS (SELECT 1 FROM orchestrator_signalreceipt t WHERE t.id = s.id))
     OR r.id = ANY (ARRAY(
            SELECT s.run_id FROM orchestrator_runsignal s
             WHERE s.kind IN ('reconciled', 'look_up') AND s.at > clock_timestamp() - interval '1 day'
               AND NOT EXISTS (SELECT 1 FROM orchestrator_signalreceipt t WHERE t.id = s.id) LIMIT 100))
     OR r.status IN ('queued', 'in_progress', 'awaiting_gate', 'awaiting_input', 'paused')
     AND (r.status IN ('queued', 'in_progress') AND r.wake_at IS NULL
          OR r.wake_at <= clock_timestamp()
          OR r.lease_until < clock_timestamp()
          OR EXISTS (SELECT 1 FROM orchestrator_runsignal s WHERE s.run_id = r.id
               AND NOT EXISTS (SELECT 1 FROM orchestrator_signalreceipt t WHERE t.id = s.id))))) due
 ORDER BY due.turn, due.created_at LIMIT least(n, 100)
$$;
REVOKE ALL ON FUNCTION due_runs(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION due_runs(integer) TO interlock_app;

-- Returns runs whose worker has died, which the lock that their lease names shows: nobody holds it any more. Their
-- leases need not run out (R-SESS-2).
CREATE FUNCTION abandoned_runs(n integer) RETURNS SETOF uuid
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
WITH leased AS MATERIALIZED (
  SELECT r.id, substring(r.lease_owner from ':lock:([0-9]{1,18})$')::bigint AS number
    FROM orchestrator_run r
   WHERE r.status IN ('queued', 'in_progress', 'awaiting_gate', 'awaiting_input', 'paused')
     AND r.lease_until > clock_timestamp()),
gone AS MATERIALIZED (
  SELECT number FROM (SELECT DISTINCT number FROM leased WHERE number IS NOT NULL) named
   WHERE NOT interlock_lock_is_held(number))
SELECT leased.id FROM leased JOIN gone USING (number) LIMIT least(n, 100)
$$;
REVOKE ALL ON FUNCTION abandoned_runs(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION abandoned_runs(integer) TO interlock_app;
