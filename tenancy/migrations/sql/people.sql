-- What is asked about a person across tenants.

-- Returns the tenants that a person belongs to.
CREATE FUNCTION memberships_of(wanted uuid) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
SELECT DISTINCT tenant_id FROM tenancy_membership WHERE person_id = wanted
$$;
REVOKE ALL ON FUNCTION memberships_of(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION memberships_of(uuid) TO interlock_app;

-- Returns the people who saw a person's first-password link in another tenant, directly or through one another. The
-- ties of the tenant itself are read as ordinary rows; those of other tenants are what it cannot see.
CREATE FUNCTION people_with_link(person uuid, tenant uuid) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
WITH RECURSIVE held(id) AS (
  SELECT t.by_id FROM tenancy_persontie t WHERE t.kind = 'link_seen' AND t.person_id = $1 AND t.tenant_id <> $2
  UNION
  SELECT t.by_id FROM tenancy_persontie t JOIN held h ON t.person_id = h.id
   WHERE t.kind = 'link_seen' AND t.tenant_id <> $2
)
SELECT id FROM held WHERE id <> $1
$$;
REVOKE ALL ON FUNCTION people_with_link(uuid, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION people_with_link(uuid, uuid) TO interlock_app;
