"""A decision may send a call back to whoever proposed it (R-APPR-3)."""

from typing import ClassVar

from django.db import migrations, models

KINDS = ("approve", "edit", "reject", "revise", "extend", "answer", "happened", "not_happened", "cancel")


class Migration(migrations.Migration):
    """One word more."""

    dependencies: ClassVar[list[tuple[str, str]]] = [("approvals", "0005_handling")]
    operations: ClassVar[list[migrations.operations.base.Operation]] = [
        migrations.AlterField(
            model_name="decision",
            name="kind",
            field=models.CharField(choices=[(kind, kind) for kind in KINDS], max_length=16),
        ),
    ]
