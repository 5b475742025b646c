"""What lists of runs need: a title, and an index for each filter (R-UI-2, R-UI-12)."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0003_task_asked")]

    operations = [
        migrations.AddField(
            model_name="run", name="title", field=models.CharField(blank=True, default="", max_length=200)
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["tenant", "workflow", "-created_at"], name="run_by_workflow"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                fields=["tenant", "terminal_code", "-created_at"],
                condition=~Q(terminal_code=""),
                name="run_by_code",
            ),
        ),
        migrations.AddIndex(
            model_name="intent",
            index=models.Index(
                fields=["tenant", "tool", "run_id"], condition=~Q(tool=""), name="intent_by_tool"
            ),
        ),
    ]
