-- Permits: the last question before a call leaves, answered in one statement. Each returns 'ok', or what is missing.

-- For a call: the run's lease and fence, the committed intent, an open reservation, and no emergency stop.
CREATE FUNCTION interlock_permit(t uuid, r uuid, e text, f bigint) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('interlock.tenant', t::text, true);
  IF NOT EXISTS (SELECT 1 FROM orchestrator_run
      WHERE id = r AND fence = f AND lease_owner IS NOT NULL AND lease_until > clock_timestamp()) THEN
    RETURN 'fence';
  END IF;
  IF NOT EXISTS (SELECT 1 FROM orchestrator_intent
      WHERE tenant_id = t AND effect = e AND run_id = r AND fence = f AND deadline > clock_timestamp()) THEN
    RETURN 'intent';
  END IF;
  IF NOT EXISTS (SELECT 1 FROM budgets_entry WHERE tenant_id = t AND effect_id = e AND cause = 'reserve')
     OR EXISTS (SELECT 1 FROM budgets_entry WHERE tenant_id = t AND effect_id = e AND cause IN ('settle', 'release')) THEN
    RETURN 'reservation';
  END IF;
  IF EXISTS (SELECT 1 FROM orchestrator_emergencystop s WHERE s.lifted_at IS NULL AND (s.scope = 'global'
      OR (s.tenant_id = t AND (s.scope = 'tenant'
        OR (s.scope = 'workflow' AND s.target = (SELECT workflow FROM orchestrator_run WHERE id = r))
        OR (s.scope = 'tool' AND s.target = (SELECT tool FROM orchestrator_intent
              WHERE tenant_id = t AND effect = e AND fence = f)))))) THEN
    RETURN 'emergency_stop';
  END IF;
  RETURN 'ok';
END $$;
REVOKE ALL ON FUNCTION interlock_permit(uuid, uuid, text, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION interlock_permit(uuid, uuid, text, bigint) TO interlock_app;

-- For the look-up of an effect in flight whose sender may be dead: its intent may be of an older fence and past its
-- deadline, but it was committed, and its reservation is open.
CREATE FUNCTION interlock_look_permit(t uuid, r uuid, e text, f bigint) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('interlock.tenant', t::text, true);
  IF NOT EXISTS (SELECT 1 FROM orchestrator_run
      WHERE id = r AND fence = f AND lease_owner IS NOT NULL AND lease_until > clock_timestamp()) THEN
    RETURN 'fence';
  END IF;
  IF NOT EXISTS (SELECT 1 FROM orchestrator_intent WHERE tenant_id = t AND effect = e AND run_id = r) THEN
    RETURN 'intent';
  END IF;
  IF NOT EXISTS (SELECT 1 FROM budgets_entry WHERE tenant_id = t AND effect_id = e AND cause = 'reserve')
     OR EXISTS (SELECT 1 FROM budgets_entry
                 WHERE tenant_id = t AND effect_id = e AND cause IN ('settle', 'release')) THEN
    RETURN 'reservation';
  END IF;
  IF EXISTS (SELECT 1 FROM orchestrator_emergencystop s WHERE s.lifted_at IS NULL AND (s.scope = 'global'
      OR (s.tenant_id = t AND (s.scope = 'tenant'
        OR (s.scope = 'workflow' AND s.target = (SELECT workflow FROM orchestrator_run WHERE id = r))
        OR (s.scope = 'tool' AND s.target IN (SELECT tool FROM orchestrator_intent
              WHERE tenant_id = t AND effect = e)))))) THEN
    RETURN 'emergency_stop';
  END IF;
  RETURN 'ok';
END $$;
REVOKE ALL ON FUNCTION interlock_look_permit(uuid, uuid, text, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION interlock_look_permit(uuid, uuid, text, bigint) TO interlock_app;

-- For a look-up after the run has ended and its reservation is settled: a person asked for this very look-up, and
-- nobody made it yet.
CREATE FUNCTION interlock_late_look_permit(t uuid, r uuid, e text, f bigint) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('interlock.tenant', t::text, true);
  IF NOT EXISTS (SELECT 1 FROM orchestrator_run
      WHERE id = r AND fence = f AND lease_owner IS NOT NULL AND lease_until > clock_timestamp()
        AND finished_at IS NOT NULL) THEN
    RETURN 'fence';
  END IF;
  IF NOT EXISTS (SELECT 1 FROM orchestrator_intent WHERE tenant_id = t AND effect = e AND mutating) THEN
    RETURN 'intent';
  END IF;
  IF NOT EXISTS (SELECT 1 FROM orchestrator_runsignal s WHERE s.run_id = r AND s.kind = 'look_up'
        AND s.payload -> 'change' ->> 'effect' = e
        AND NOT EXISTS (SELECT 1 FROM orchestrator_signalreceipt x WHERE x.id = s.id)) THEN
    RETURN 'not_asked';
  END IF;
  IF EXISTS (SELECT 1 FROM orchestrator_emergencystop s WHERE s.lifted_at IS NULL AND (s.scope = 'global'
      OR (s.tenant_id = t AND (s.scope = 'tenant'
        OR (s.scope = 'workflow' AND s.target = (SELECT workflow FROM orchestrator_run WHERE id = r))
        OR (s.scope = 'tool' AND s.target IN (SELECT tool FROM orchestrator_intent
              WHERE tenant_id = t AND effect = e)))))) THEN
    RETURN 'emergency_stop';
  END IF;
  RETURN 'ok';
END $$;
REVOKE ALL ON FUNCTION interlock_late_look_permit(uuid, uuid, text, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION interlock_late_look_permit(uuid, uuid, text, bigint) TO interlock_app;
