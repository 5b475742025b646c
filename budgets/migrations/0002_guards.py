"""Guards of budgets: tenants are apart, the ledger is for ever, reservations are within their limits."""

from django.db import migrations

from tenancy.db.integrity_guards import (
    append_only,
    create_cross_tenant_policy,
    grant_table_rights,
    read_sql,
    row_security,
    same_tenant_key,
)

APPENDED = ("entry", "price", "ratelimit", "runfigures", "tenantceiling")
CHANGED = {
    "account": "UPDATE",
    # What a window could not bear is lowered to the least; nothing else of an alert ever changes.
    "alert": "UPDATE (wanted_usd)",
    "alertmail": "UPDATE",
    "dayspend": "UPDATE",
    "driftflag": "UPDATE (ended_at)",
    "line": "UPDATE",
    "tranche": "UPDATE",
}
REFERENCES = (
    ("alertmail", "alert_id", "alert"),
    ("line", "account_id", "account"),
    ("tranche", "run_account_id", "account"),
    ("tranche", "day_id", "account"),
    ("tranche", "month_id", "account"),
)


class Migration(migrations.Migration):
    """Guards after the tables."""

    dependencies = [("budgets", "0001_initial"), ("tenancy", "0002_guards")]
    operations = [
        migrations.RunSQL(
            [
                *(row_security(f"budgets_{table}") for table in (*APPENDED, *CHANGED)),
                *(grant_table_rights(f"budgets_{table}", "SELECT, INSERT") for table in APPENDED),
                *(
                    grant_table_rights(f"budgets_{table}", f"SELECT, INSERT, {update}")
                    for table, update in CHANGED.items()
                ),
                *(append_only(f"budgets_{table}") for table in APPENDED),
                *(
                    same_tenant_key(f"budgets_{table}", column, f"budgets_{target}")
                    for table, column, target in REFERENCES
                ),
                create_cross_tenant_policy("budgets_alertmail", "SELECT"),
                *read_sql(__file__, "lines", "lanes", "alerts"),
            ]
        )
    ]
