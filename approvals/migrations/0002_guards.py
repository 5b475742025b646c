"""Guards of approvals: decisions are append-only, and a request only ever leaves pending, once (R-APPR-2)."""

from django.db import migrations

from tenancy.db.integrity_guards import (
    append_only,
    create_cross_tenant_policy,
    grant_table_rights,
    never_truncated,
    read_sql,
    row_security,
    same_tenant_key,
)

APPENDED = ("decision", "grantuse", "handling", "undowindow")
ENDED_ONCE = ("request", "deferral")
REFERENCES = (
    ("decision", "request_id"), ("deferral", "request_id"), ("grantuse", "id"), ("handling", "request_id"),
)  # fmt: skip


class Migration(migrations.Migration):
    """Guards after the tables."""

    dependencies = [("approvals", "0001_initial"), ("tenancy", "0002_guards")]
    operations = [
        migrations.RunSQL(
            [
                *(row_security(f"approvals_{table}") for table in (*APPENDED, *ENDED_ONCE)),
                *(grant_table_rights(f"approvals_{table}", "SELECT, INSERT") for table in APPENDED),
                *(grant_table_rights(f"approvals_{table}", "SELECT, INSERT, UPDATE") for table in ENDED_ONCE),
                *(append_only(f"approvals_{table}") for table in APPENDED),
                *(never_truncated(f"approvals_{table}") for table in ENDED_ONCE),
                *(
                    same_tenant_key(f"approvals_{table}", column, "approvals_request")
                    for table, column in REFERENCES
                ),
                create_cross_tenant_policy("approvals_deferral", "SELECT"),
                *read_sql(__file__, "requests", "decisions", "deferrals"),
            ]
        )
    ]
