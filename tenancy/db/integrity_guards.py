"""Guards that live in the database, as the statements of migrations (docs/operations.md).

The owner of the tables runs them. They cannot be reversed: the tables go with the database.
"""

from pathlib import Path

APP, AUDITOR = "interlock_app", "interlock_auditor"
_NEVER_TRUNCATED = """
CREATE TRIGGER never_truncated BEFORE TRUNCATE ON {table}
  FOR EACH STATEMENT EXECUTE FUNCTION interlock_append_only();
"""


def read_sql(migration: str, *names: str) -> list[str]:
    """Return the text of these files in the folder `sql` beside a migration; a file holds one subject."""
    return [Path(migration).with_name("sql").joinpath(f"{name}.sql").read_text() for name in names]


def row_security(table: str) -> str:
    """Return the statement that lets everybody but a superuser see and write only the rows of one tenant.

    The tenant is the one that the transaction names.
    """
    here = "tenant_id = nullif(current_setting('interlock.tenant', true), '')::uuid"
    return f"""
    ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
    ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
    CREATE POLICY of_this_tenant ON {table} USING ({here}) WITH CHECK ({here});
    """


def append_only(table: str) -> str:
    """Return the statement that refuses UPDATE, DELETE and TRUNCATE of a table for every role."""
    return f"""
    CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {table}
      FOR EACH ROW EXECUTE FUNCTION interlock_append_only();
    {_NEVER_TRUNCATED.format(table=table)}
    """


def never_truncated(table: str) -> str:
    """Return the statement that refuses TRUNCATE of a table for every role."""
    return _NEVER_TRUNCATED.format(table=table)


def grant_table_rights(table: str, rights: str, *, shown: str = "") -> str:
    """Return the statement that gives the application `rights` (such as "SELECT, INSERT") to a table.

    The auditor may read all columns, or those `shown`.
    """
    columns = f" ({shown})" if shown else ""
    return f"GRANT {rights} ON {table} TO {APP}; GRANT SELECT{columns} ON {table} TO {AUDITOR};"


def same_tenant_key(table: str, column: str, target: str) -> str:
    """Return the statement that adds a reference which cannot reach into another tenant.

    It is the foreign key (tenant_id, column) → (tenant_id, id).
    """
    name = f"{table}_{column}_same_tenant"[:63]
    return f"""
    ALTER TABLE {table} ADD CONSTRAINT {name}
      FOREIGN KEY (tenant_id, {column}) REFERENCES {target} (tenant_id, id)
      DEFERRABLE INITIALLY IMMEDIATE;
    """


def create_cross_tenant_policy(table: str, command: str) -> str:
    """Return the statement that lets the owner's functions see, or with UPDATE change, rows of every tenant.

    Nobody else acts as the owner.
    """
    clause = "USING (true)" if command == "SELECT" else "USING (true) WITH CHECK (true)"
    return f"CREATE POLICY crossing_{command.lower()} ON {table} FOR {command} TO interlock_owner {clause};"
