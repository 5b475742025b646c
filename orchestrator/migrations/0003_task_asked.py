"""What a task asked for, as one digest: a repeated Idempotency-Key is held against it (R-GRAPH-14)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0002_guards")]

    operations = [
        migrations.AddField(
            model_name="task",
            name="asked_digest",
            field=models.CharField(blank=True, default="", max_length=64),
        )
    ]
