-- Tenants: a suspension has a reason; platform administrators see how many administrators a tenant has.

ALTER TABLE tenancy_tenant ADD CONSTRAINT tenant_suspended_with_reason
  CHECK ((suspended_at IS NULL) = (suspended_reason = ''));

-- Returns for each of these tenants the number of its administrators, and how many of them have never signed in or
-- wait to be confirmed. It returns numbers alone, and answers platform administrators alone. A password that cannot
-- be used begins with "!".
CREATE FUNCTION tenant_administrators(asker uuid, tenants uuid[])
RETURNS TABLE (of_tenant uuid, administrators bigint, waiting bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
SELECT m.tenant_id, count(*),
       count(*) FILTER (WHERE p.last_login IS NULL AND p.password LIKE '!%' OR m.awaits_confirmation)
  FROM tenancy_membership m JOIN tenancy_person p ON p.id = m.person_id
 WHERE m.tenant_id = ANY ($2) AND m.role = 'admin' AND p.is_active
   AND EXISTS (SELECT 1 FROM tenancy_platformadmin a JOIN tenancy_person me ON me.id = a.person_id
                WHERE a.person_id = $1 AND me.is_active)
 GROUP BY m.tenant_id
$$;
REVOKE ALL ON FUNCTION tenant_administrators(uuid, uuid[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenant_administrators(uuid, uuid[]) TO interlock_app;
