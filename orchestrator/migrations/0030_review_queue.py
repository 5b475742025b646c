"""The reviews of one queue are read by an index, as all of them are (R-TOOL-19)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0029_own_models")]

    operations = [
        migrations.AddIndex(
            "reviewitem", models.Index(fields=["tenant", "queue", "-at", "-id"], name="review_of_queue")
        )
    ]
