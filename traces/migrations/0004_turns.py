"""When a run was begun, held and resumed, without walking its trace (R-UI-3)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("traces", "0003_failures")]

    operations = [
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                fields=["tenant", "run_id", "seq"],
                condition=models.Q(kind__in=("run_started", "run_paused", "run_resumed")),
                name="event_turns",
            ),
        )
    ]
