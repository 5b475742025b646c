"""The failures of tools, to be counted without walking every trace (R-UI-5)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("traces", "0002_guards")]

    operations = [
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                fields=["tenant", "run_id"],
                condition=models.Q(kind="failure_committed"),
                name="event_failures",
            ),
        )
    ]
