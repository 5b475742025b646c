"""What people of the house are told of, and the letters about it (R-TOOL-15, R-BUDGET-14)."""

import django.db.models.deletion
import tenancy.db.ids
from django.db import migrations, models
from tenancy.db.migration_operations import MadeTogether
from tenancy.db.integrity_guards import (
    append_only,
    create_cross_tenant_policy,
    create_definer_function,
    grant_table_rights,
    row_security,
    same_tenant_key,
)

RIGHTS = {"notice": "SELECT, INSERT", "noticemail": "SELECT, INSERT, UPDATE"}
DUE = """
SELECT DISTINCT tenant_id FROM tenancy_noticemail
 WHERE sent_at IS NULL AND tries < 10 AND next_at <= clock_timestamp() LIMIT least(n, 1000)
"""


class Migration(MadeTogether):
    dependencies = [("tenancy", "0006_webhook_keeping")]

    operations = [
        migrations.CreateModel(
            name="Notice",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=32)),
                ("subject", models.CharField(max_length=100)),
                ("data", models.JSONField()),
                ("at", models.DateTimeField()),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "indexes": [models.Index(fields=["tenant", "kind", "-at"], name="notice_newest")],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_notice_of_tenant"),
                    models.UniqueConstraint(fields=("tenant", "kind", "subject"), name="notice_once"),
                ],
            },
        ),
        migrations.CreateModel(
            name="NoticeMail",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("person_id", models.UUIDField()),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("next_at", models.DateTimeField()),
                ("sent_at", models.DateTimeField(null=True)),
                ("error", models.CharField(blank=True, default="", max_length=200)),
                (
                    "notice",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="mails",
                        to="tenancy.notice",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "indexes": [
                    models.Index(
                        condition=models.Q(("sent_at", None)), fields=["next_at"], name="notice_mail_due"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_noticemail_of_tenant"),
                    models.UniqueConstraint(
                        fields=("tenant", "notice", "person_id"), name="notice_mail_once_a_person"
                    ),
                ],
            },
        ),
        *(row_security(f"tenancy_{table}") for table in RIGHTS),
        *(grant_table_rights(f"tenancy_{table}", rights) for table, rights in RIGHTS.items()),
        append_only("tenancy_notice"),
        same_tenant_key("tenancy_noticemail", "notice_id", "tenancy_notice"),
        create_cross_tenant_policy("tenancy_noticemail", "SELECT"),
        create_definer_function("tenants_with_notices", "n integer", "SETOF uuid", DUE),
    ]
