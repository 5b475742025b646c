-- Functions that other guards and the application call to refuse a statement.

-- The function behind the triggers `append_only` and `never_truncated`.
CREATE FUNCTION interlock_append_only() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog AS $$
BEGIN
  RAISE EXCEPTION '% of % is refused: the table is append-only', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'integrity_constraint_violation';
END $$;

-- Ends a batch of statements of which one changed no row.
CREATE FUNCTION interlock_refuse_unless(took boolean) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog AS $$
BEGIN
  IF took IS NOT TRUE THEN
    RAISE EXCEPTION 'a row did not take its change' USING ERRCODE = 'IL001';
  END IF;
END $$;
REVOKE ALL ON FUNCTION interlock_refuse_unless(boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION interlock_refuse_unless(boolean) TO interlock_app;
