-- Returns whether some process holds the advisory lock with this number; pg_locks shows its 64 bits in two columns.
-- The owner's functions that cross tenants call it, too.
CREATE FUNCTION interlock_lock_is_held(number bigint) RETURNS boolean LANGUAGE sql VOLATILE
SET search_path = pg_catalog AS $$
  SELECT EXISTS (
    SELECT 1 FROM pg_locks
     WHERE locktype = 'advisory' AND objsubid = 1 AND granted
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND (classid::bigint << 32 | objid::bigint) = number)
$$;
REVOKE ALL ON FUNCTION interlock_lock_is_held(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION interlock_lock_is_held(bigint) TO interlock_app, interlock_owner;
