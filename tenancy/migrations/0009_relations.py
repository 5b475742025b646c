"""Why two people are related, and who knows a key's secret (R-APPR-5)."""

import django.db.models.deletion
import tenancy.db.ids
from django.conf import settings
from django.db import migrations, models
from tenancy.db.migration_operations import MadeTogether
from tenancy.db.integrity_guards import append_only, grant_table_rights, row_security, same_tenant_key

TABLES = ("tenancy_persontie", "tenancy_keymaker")
KINDS = ["role_given", "link_seen", "confirmed"]


class Migration(MadeTogether):
    """Two tables, written once and never changed."""

    dependencies = [("tenancy", "0008_answer_as_text")]
    operations = [
        migrations.CreateModel(
            name="PersonTie",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("kind", models.CharField(choices=[(kind, kind) for kind in KINDS], max_length=16)),
                ("at", models.DateTimeField()),
                (
                    "by",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
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
                "indexes": [models.Index(fields=["tenant", "kind", "at"], name="person_tie_by_time")],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_persontie_of_tenant"),
                    models.CheckConstraint(condition=models.Q(("kind__in", KINDS)), name="person_tie_known"),
                    models.CheckConstraint(
                        condition=models.Q(("person", models.F("by")), _negated=True),
                        name="person_tie_of_two",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="KeyMaker",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
                (
                    "person",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "principal",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="makers",
                        to="tenancy.principal",
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
                "indexes": [models.Index(fields=["tenant", "person"], name="key_maker_by_person")],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_keymaker_of_tenant"),
                    models.UniqueConstraint(fields=("tenant", "principal", "person"), name="key_maker_once"),
                ],
            },
        ),
        *(row_security(table) for table in TABLES),
        *(grant_table_rights(table, "SELECT, INSERT") for table in TABLES),
        *(append_only(table) for table in TABLES),
        same_tenant_key("tenancy_keymaker", "principal_id", "tenancy_principal"),
    ]
