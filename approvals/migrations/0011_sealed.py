"""Whether a request holds sealed values; a reveal is kept on its record."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0010_key_makers")]

    operations = [
        migrations.AddField(
            model_name="request",
            name="sealed",
            field=models.BooleanField(default=False, db_default=False),
        ),
        migrations.AlterField(
            model_name="handling",
            name="kind",
            field=models.CharField(
                choices=[
                    ("claim", "claim"),
                    ("assign", "assign"),
                    ("release", "release"),
                    ("snooze", "snooze"),
                    ("wake", "wake"),
                    ("comment", "comment"),
                    ("reveal", "reveal"),
                ],
                max_length=8,
            ),
        ),
    ]
