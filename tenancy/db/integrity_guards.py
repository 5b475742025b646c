"""Guards that live in the database, as migrations (docs/operations.md). Plain SQL owned by the owner role."""

from django.db.migrations import RunSQL

APP, AUDITOR = "interlock_app", "interlock_auditor"


def row_security(table: str) -> RunSQL:
    """Only the rows of the tenant named in this transaction can be seen or written, by anybody but a
    superuser."""
    here = "tenant_id = nullif(current_setting('interlock.tenant', true), '')::uuid"
    return RunSQL(
        f"""
        ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
        ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
        CREATE POLICY of_this_tenant ON {table} USING ({here}) WITH CHECK ({here});
        """,
        f"DROP POLICY of_this_tenant ON {table}; ALTER TABLE {table} DISABLE ROW LEVEL SECURITY;",
    )


def append_only_function() -> RunSQL:
    """The function behind `append_only`; once, in tenancy's own migration."""
    return RunSQL(
        """
        CREATE FUNCTION interlock_append_only() RETURNS trigger LANGUAGE plpgsql
        SET search_path = pg_catalog AS $$
        BEGIN
          RAISE EXCEPTION '% of % is refused: the table is append-only', TG_OP, TG_TABLE_NAME
            USING ERRCODE = 'integrity_constraint_violation';
        END $$;
        """,
        "DROP FUNCTION interlock_append_only();",
    )


def append_only(table: str) -> RunSQL:
    """UPDATE, DELETE and TRUNCATE are refused for every role."""
    return RunSQL(
        f"""
        CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {table}
          FOR EACH ROW EXECUTE FUNCTION interlock_append_only();
        CREATE TRIGGER never_truncated BEFORE TRUNCATE ON {table}
          FOR EACH STATEMENT EXECUTE FUNCTION interlock_append_only();
        """,
        f"DROP TRIGGER append_only ON {table}; DROP TRIGGER never_truncated ON {table};",
    )


def grant_table_rights(table: str, rights: str, *, shown: str = "") -> RunSQL:
    """Give the application `rights` (such as "SELECT, INSERT"), the auditor a look at all columns or at
    those `shown`."""
    columns = f" ({shown})" if shown else ""
    return RunSQL(
        f"GRANT {rights} ON {table} TO {APP}; GRANT SELECT{columns} ON {table} TO {AUDITOR};",
        f"REVOKE ALL ON {table} FROM {APP}; REVOKE ALL ON {table} FROM {AUDITOR};",
    )


def grant_sequence(sequence: str) -> RunSQL:
    """Let the application draw numbers."""
    return RunSQL(
        f"GRANT USAGE ON SEQUENCE {sequence} TO {APP};", f"REVOKE ALL ON SEQUENCE {sequence} FROM {APP};"
    )


def same_tenant_key(table: str, column: str, target: str) -> RunSQL:
    """A reference that cannot reach into another tenant: (tenant_id, column) → (tenant_id, id)."""
    name = f"{table}_{column}_same_tenant"[:63]
    return RunSQL(
        f"""
        ALTER TABLE {table} ADD CONSTRAINT {name}
          FOREIGN KEY (tenant_id, {column}) REFERENCES {target} (tenant_id, id)
          DEFERRABLE INITIALLY IMMEDIATE;
        """,
        f"ALTER TABLE {table} DROP CONSTRAINT {name};",
    )


def create_definer_function(
    name: str, args: str, returns: str, body: str, *, volatility: str = "STABLE"
) -> RunSQL:
    """One of the closed list of functions that cross tenants: pinned search_path, ids only."""
    bare = ", ".join(part.strip().split(" ", 1)[1] for part in args.split(",")) if args else ""
    return RunSQL(
        f"""
        CREATE FUNCTION {name}({args}) RETURNS {returns} LANGUAGE sql {volatility} SECURITY DEFINER
        SET search_path = public, pg_temp AS $$ {body} $$;
        REVOKE ALL ON FUNCTION {name}({bare}) FROM PUBLIC;
        GRANT EXECUTE ON FUNCTION {name}({bare}) TO {APP};
        """,
        f"DROP FUNCTION {name}({bare});",
    )


def create_cross_tenant_policy(table: str, command: str) -> RunSQL:
    """Let the owner's definer functions see (or, with UPDATE, renew) rows of every tenant; nobody else is
    the owner."""
    name = f"crossing_{command.lower()}"
    clause = "USING (true)" if command == "SELECT" else "USING (true) WITH CHECK (true)"
    return RunSQL(
        f"CREATE POLICY {name} ON {table} FOR {command} TO interlock_owner {clause};",
        f"DROP POLICY {name} ON {table};",
    )
