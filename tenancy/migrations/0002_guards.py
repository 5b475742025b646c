"""Row security, rights and append-only tables of tenancy; functions and triggers are in `sql` (docs/operations.md)."""

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

# What the application may do with the rows of a tenant. It changes only the columns that its verbs change: what a key
# may do, a role, a secret's origin and an endpoint's address are what they were made as (R-SEC-1, R-SEC-2).
OF_TENANTS = {
    "apikey": "SELECT, INSERT, UPDATE (revoked_at, last_used_at, expires_at)",
    "auditentry": "SELECT, INSERT",
    "idempotencykey": "SELECT, INSERT, UPDATE, DELETE",
    "keymaker": "SELECT, INSERT",
    "membership": "SELECT, INSERT, DELETE, UPDATE (queues, max_amount, max_risk, awaits_confirmation)",
    "notice": "SELECT, INSERT",
    "noticemail": "SELECT, INSERT, UPDATE",
    "persontie": "SELECT, INSERT",
    "principal": "SELECT, INSERT",
    "queue": "SELECT, INSERT, UPDATE (description, closed_at, closed_by)",
    "secret": "SELECT, INSERT, UPDATE (revoked_at, sealed, renewal)",
    "signinrulesversion": "SELECT, INSERT",
    "tenantsession": "SELECT, INSERT, UPDATE (last_seen_at, address, browser, ended_at, ended_by)",
    "webhook": (
        "SELECT, INSERT, UPDATE (sealed, sealed_before, before_until, failing_since, off_at, off_why, tell_at,"
        " told_at, removed_at)"
    ),
    "webhookattempt": "SELECT, INSERT",
    "webhookdelivery": "SELECT, INSERT, UPDATE",
    "webhookkeeping": "SELECT, INSERT",
    "webhookmessage": "SELECT, INSERT",
}
# Rows of no tenant. Who administers the platform, and by which keys, the owner of the database alone writes; a tenant
# keeps its id, its slug and the time at which it was opened.
OF_ALL = {
    "person": "SELECT, INSERT, UPDATE",
    "platformadmin": "SELECT",
    "platformanswer": "SELECT, INSERT, DELETE, UPDATE (status, answer)",
    "platformentry": "SELECT, INSERT",
    "platformkey": "SELECT, UPDATE (last_used_at)",
    "tenant": (
        "SELECT, INSERT,"
        " UPDATE (name, time_zone, tier, highest_autonomy_tier, suspended_at, suspended_reason)"
    ),
}
# The columns that the auditor sees, where not all: none to try passwords or keys against, and nothing sealed.
SHOWN = {
    "apikey": (
        "tenant_id, id, principal_id, label, role, scopes, runs, workflows, addresses, created_at, expires_at,"
        " revoked_at, last_used_at"
    ),
    "person": "id, email, name, is_active, created_at",
    "platformanswer": "id, api_key_id, path, status, expires_at",
    "platformkey": "id, person_id, label, created_at, expires_at, revoked_at, last_used_at",
    "secret": "tenant_id, id, name, origin, created_by, created_at, revoked_at, expires_at, renews_at",
    "webhook": (
        "tenant_id, id, name, url, origin, events, before_until, created_by, created_at, failing_since, off_at,"
        " off_why, tell_at, told_at, removed_at"
    ),
}
APPENDED = (
    "auditentry", "keymaker", "notice", "persontie", "platformentry", "signinrulesversion", "webhookkeeping",
)  # fmt: skip
# What functions that cross tenants look at.
CROSSED = ("apikey", "membership", "noticemail", "persontie", "webhook", "webhookdelivery")
REFERENCES = (
    ("apikey", "principal_id", "principal"),
    ("keymaker", "principal_id", "principal"),
    ("noticemail", "notice_id", "notice"),
    ("webhookattempt", "delivery_id", "webhookdelivery"),
    ("webhookdelivery", "message_id", "webhookmessage"),
    ("webhookdelivery", "webhook_id", "webhook"),
)
FILES = ("process_lock", "tenants", "people", "keys", "sessions", "queues", "webhooks", "notices")


class Migration(migrations.Migration):
    """Guards after the tables."""

    dependencies = [("tenancy", "0001_initial")]
    operations = [
        migrations.RunSQL(
            [
                *read_sql(__file__, "refusals"),
                *(row_security(f"tenancy_{table}") for table in OF_TENANTS),
                *(
                    grant_table_rights(f"tenancy_{table}", rights, shown=SHOWN.get(table, ""))
                    for table, rights in (OF_TENANTS | OF_ALL).items()
                ),
                *(append_only(f"tenancy_{table}") for table in APPENDED),
                *(never_truncated(f"tenancy_{table}") for table in ("webhookattempt", "webhookmessage")),
                *(
                    same_tenant_key(f"tenancy_{table}", column, f"tenancy_{target}")
                    for table, column, target in REFERENCES
                ),
                *(create_cross_tenant_policy(f"tenancy_{table}", "SELECT") for table in CROSSED),
                *read_sql(__file__, *FILES),
            ]
        )
    ]
