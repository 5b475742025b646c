-- API keys: the forms of what limits them, and how long they live.

-- In the first constraint commas part the patterns, so no pattern may hold one.
ALTER TABLE tenancy_apikey
  ADD CONSTRAINT key_workflows_formed CHECK (
    array_to_string(workflows, ',') ~ '^([a-z0-9*][a-z0-9_*-]{0,63}(,[a-z0-9*][a-z0-9_*-]{0,63})*)?$'
    AND array_position(workflows, NULL) IS NULL
    AND cardinality(string_to_array(array_to_string(workflows, ','), ',')) = cardinality(workflows)),
  ADD CONSTRAINT key_addresses_formed CHECK (
    (addresses::text[]::cidr[]) IS NOT NULL AND array_position(addresses, NULL) IS NULL),
  ADD CONSTRAINT key_limits_few CHECK (cardinality(workflows) <= 20 AND cardinality(addresses) <= 20);

-- A rotation ends the key before it sooner; nothing lets a key live longer than it was made for.
CREATE FUNCTION tenancy_key_ends_sooner() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  RAISE EXCEPTION 'a key lives no longer than it was made for'
    USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER key_ends_sooner BEFORE UPDATE ON tenancy_apikey FOR EACH ROW
  WHEN (OLD.expires_at IS NOT NULL AND (NEW.expires_at IS NULL OR NEW.expires_at > OLD.expires_at))
  EXECUTE FUNCTION tenancy_key_ends_sooner();

-- Returns the tenant of a key.
CREATE FUNCTION key_by_id(wanted uuid) RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
SELECT tenant_id FROM tenancy_apikey WHERE id = wanted
$$;
REVOKE ALL ON FUNCTION key_by_id(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION key_by_id(uuid) TO interlock_app;
