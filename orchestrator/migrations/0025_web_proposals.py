"""A wider web list waits for a second person too (R-TOOL-4)."""

from django.db import migrations, models

NAME = "toolproposal_kind_known"
KINDS = ["change", "admit", "declare", "web"]


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0024_circuit_tried")]

    operations = [
        migrations.RemoveConstraint("toolproposal", NAME),
        migrations.AddConstraint(
            "toolproposal", models.CheckConstraint(condition=models.Q(("kind__in", KINDS)), name=NAME)
        ),
    ]
