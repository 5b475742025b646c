"""Boundaries that let runs do more wait for a second person as other loosenings do (R-GRAPH-11)."""

from django.db import migrations, models

TABLE, NAME = "toolproposal", "toolproposal_kind_known"
KINDS = [
    "change", "admit", "declare", "web", "databases", "mail", "models", "places", "ceilings", "boundary",
]  # fmt: skip


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0040_abandoned_runs")]

    operations = [
        migrations.RemoveConstraint(TABLE, NAME),
        migrations.AddConstraint(
            TABLE, models.CheckConstraint(condition=models.Q(("kind__in", KINDS)), name=NAME)
        ),
    ]
