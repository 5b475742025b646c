-- Runs that wait in front of a model: behind an open circuit, or in the line of a model that takes so many calls at
-- once (R-TOOL-22). The owner's functions see and change these rows for every tenant.

CREATE POLICY crossing_insert ON orchestrator_modelserved FOR INSERT TO interlock_owner WITH CHECK (true);
CREATE POLICY called_up_select ON orchestrator_circuitrow FOR SELECT TO interlock_owner USING (true);
CREATE POLICY called_up_select ON orchestrator_emergencystop FOR SELECT TO interlock_owner USING (true);

-- Calls up as many runs as the model takes, and returns them. It is fair across tenants: first come tenants with the
-- fewest calls under way, then those served longest ago, then the earliest runs. A call under way counts while its
-- run's lease lives. A run that was called up has 15 seconds to take its turn; after that it goes to the end.
CREATE FUNCTION call_up(wanted uuid) RETURNS SETOF uuid
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
SELECT pg_advisory_xact_lock(hashtextextended(wanted::text, 71));
WITH busy AS (
  SELECT w.tenant_id, count(*) AS calls FROM orchestrator_modelturn w
   WHERE w.place = wanted
     AND (w.stage = 'called' AND w.until > clock_timestamp()
          OR w.stage = 'calling' AND w.until > clock_timestamp() AND EXISTS (
             SELECT 1 FROM orchestrator_run l
              WHERE l.id = w.id AND l.fence = w.fence AND l.lease_owner IS NOT NULL
                AND l.lease_until > clock_timestamp()))
   GROUP BY w.tenant_id),
first AS (
  SELECT w.id FROM (
    SELECT w.id, w.tenant_id, w.since, w.most,
           row_number() OVER (PARTITION BY w.tenant_id ORDER BY w.since, w.id) AS turn
      FROM orchestrator_modelturn w
     WHERE w.place = wanted
       AND (w.stage = 'queued' OR w.stage = 'called' AND w.until <= clock_timestamp())
       AND EXISTS (SELECT 1 FROM orchestrator_run q WHERE q.id = w.id AND q.status = 'in_progress')) w
    LEFT JOIN busy ON busy.tenant_id = w.tenant_id
    LEFT JOIN orchestrator_modelserved s ON s.place = wanted AND s.tenant_id = w.tenant_id
   ORDER BY coalesce(busy.calls, 0) + w.turn, s.at NULLS FIRST, w.since, w.id
   LIMIT greatest(0, coalesce((SELECT max(most) FROM orchestrator_modelturn m WHERE m.place = wanted), 1)
                     - coalesce((SELECT sum(calls) FROM busy), 0)::int)),
called AS (
  UPDATE orchestrator_modelturn t SET stage = 'called', since = clock_timestamp(),
         until = clock_timestamp() + interval '15 seconds'
    FROM first WHERE t.id = first.id RETURNING t.id, t.tenant_id),
served AS (
  INSERT INTO orchestrator_modelserved AS s (id, tenant_id, place, at)
  SELECT DISTINCT ON (tenant_id) gen_random_uuid(), tenant_id, wanted, clock_timestamp() FROM called
  ON CONFLICT (tenant_id, place) DO UPDATE SET at = EXCLUDED.at)
SELECT id FROM called
$$;
REVOKE ALL ON FUNCTION call_up(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION call_up(uuid) TO interlock_app;

-- Returns the runs to be driven: called up in a line; behind a circuit that has closed; the one that tries a circuit
-- whose cooldown is over; and those that an emergency stop ends.
CREATE FUNCTION called_up_runs(n integer) RETURNS SETOF uuid
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
SELECT call_up(p.place) FROM (
  SELECT DISTINCT w.place FROM orchestrator_modelturn w
   WHERE (w.stage = 'queued' OR w.stage = 'called' AND w.until <= clock_timestamp())
     AND EXISTS (SELECT 1 FROM orchestrator_run q WHERE q.id = w.id AND q.status = 'in_progress')
   ORDER BY w.place) p;
SELECT r.id FROM orchestrator_run r JOIN (
  SELECT w.id FROM orchestrator_modelturn w WHERE w.stage = 'called' AND w.until > clock_timestamp()
  UNION
  SELECT w.id FROM orchestrator_modelturn w LEFT JOIN orchestrator_circuitrow c ON c.id = w.place
   WHERE w.stage = 'away' AND (c.id IS NULL OR c.state = 'closed')
  UNION
  (SELECT DISTINCT ON (w.place) w.id FROM orchestrator_modelturn w
     JOIN orchestrator_circuitrow c ON c.id = w.place
     JOIN orchestrator_run q ON q.id = w.id AND q.status = 'in_progress'
    WHERE w.stage = 'away' AND c.state <> 'closed' AND c.until <= clock_timestamp()
    ORDER BY w.place, w.since, w.id)
  UNION
  SELECT w.id FROM orchestrator_modelturn w JOIN orchestrator_run q ON q.id = w.id
   WHERE w.stage IN ('away', 'queued') AND EXISTS (
         SELECT 1 FROM orchestrator_emergencystop e WHERE e.lifted_at IS NULL AND (e.scope = 'global'
            OR e.tenant_id = w.tenant_id AND (e.scope = 'tenant'
               OR e.scope = 'workflow' AND e.target = q.workflow)))) due ON due.id = r.id
 WHERE r.status = 'in_progress' AND (r.lease_owner IS NULL OR r.lease_until < clock_timestamp())
 LIMIT least(n, 100)
$$;
REVOKE ALL ON FUNCTION called_up_runs(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION called_up_runs(integer) TO interlock_app;
