"""Guards of the trace: it is append-only for everybody; only content and salts can be erased, by one function."""

from django.db import migrations

from tenancy.db.integrity_guards import (
    append_only,
    grant_table_rights,
    never_truncated,
    read_sql,
    row_security,
)

APPENDED = ("traces_event", "traces_record", "traces_snapshot")
ERASABLE = ("traces_payload", "traces_salt")


class Migration(migrations.Migration):
    """Guards after the tables."""

    dependencies = [("traces", "0001_initial"), ("tenancy", "0002_guards")]
    operations = [
        migrations.RunSQL(
            [
                *(row_security(table) for table in (*APPENDED, *ERASABLE)),
                *(grant_table_rights(table, "SELECT, INSERT") for table in (*APPENDED, *ERASABLE)),
                *(append_only(table) for table in APPENDED),
                *(never_truncated(table) for table in ERASABLE),
                *read_sql(__file__, "erasure", "content_storage"),
            ]
        )
    ]
