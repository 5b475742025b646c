"""What people do with a request besides deciding it: whose it is, who put it aside, what was remarked."""

from typing import ClassVar

import django.db.models.deletion
import tenancy.db.ids
from django.db import migrations, models

from tenancy.db.integrity_guards import append_only, grant_table_rights, row_security, same_tenant_key

TABLE = "approvals_handling"


class Migration(migrations.Migration):
    """One table with its guards."""

    dependencies: ClassVar[list[tuple[str, str]]] = [
        ("approvals", "0004_extending"),
        ("tenancy", "0002_guards"),
    ]

    operations: ClassVar[list[migrations.operations.base.Operation]] = [
        migrations.CreateModel(
            name="Handling",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("principal", models.UUIDField()),
                ("owner", models.UUIDField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("claim", "claim"),
                            ("assign", "assign"),
                            ("release", "release"),
                            ("snooze", "snooze"),
                            ("wake", "wake"),
                            ("comment", "comment"),
                        ],
                        max_length=8,
                    ),
                ),
                ("to", models.UUIDField(null=True)),
                ("until", models.DateTimeField(null=True)),
                ("text", models.TextField(blank=True)),
                ("at", models.DateTimeField()),
                (
                    "request",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="handlings",
                        to="approvals.request",
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
                    models.Index(fields=["tenant", "request", "at"], name="handling_of_request"),
                    models.Index(fields=["tenant", "at"], name="handling_lately"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="approvals_handling_of_tenant"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind__in", ("claim", "assign")), ("to__isnull", False)),
                            models.Q(
                                models.Q(("kind__in", ("claim", "assign")), _negated=True), ("to", None)
                            ),
                            _connector="OR",
                        ),
                        name="handling_to_somebody",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind", "snooze"), ("until__isnull", False)),
                            models.Q(models.Q(("kind", "snooze"), _negated=True), ("until", None)),
                            _connector="OR",
                        ),
                        name="handling_until_some_time",
                    ),
                ],
            },
        ),
        row_security(TABLE),
        append_only(TABLE),
        grant_table_rights(TABLE, "SELECT, INSERT"),
        same_tenant_key(TABLE, "request_id", "approvals_request"),
    ]
