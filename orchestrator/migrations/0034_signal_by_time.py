"""Signals of the last day are counted without a walk over all there were (R-UI-12)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """One index."""

    dependencies = [("orchestrator", "0033_retry_guards")]
    operations = [
        migrations.AddIndex(
            model_name="runsignal", index=models.Index(fields=["tenant", "at"], name="signal_by_time")
        ),
    ]
