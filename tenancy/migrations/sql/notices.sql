-- Returns tenants with mails about notices that are due.
CREATE FUNCTION tenants_with_notices(n integer) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
SELECT DISTINCT tenant_id FROM tenancy_noticemail
 WHERE sent_at IS NULL AND tries < 10 AND next_at <= clock_timestamp() LIMIT least(n, 1000)
$$;
REVOKE ALL ON FUNCTION tenants_with_notices(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_with_notices(integer) TO interlock_app;
