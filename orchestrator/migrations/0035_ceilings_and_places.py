"""Ceilings that are raised and private places wait for a second person as other loosenings do (R-BUDGET-9,
P8)."""

from django.db import migrations, models

TABLE, NAME = "toolproposal", "toolproposal_kind_known"
KINDS = ["change", "admit", "declare", "web", "databases", "mail", "models", "places", "ceilings"]


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0034_signal_by_time")]

    operations = [
        migrations.RemoveConstraint(TABLE, NAME),
        migrations.AddConstraint(
            TABLE, models.CheckConstraint(condition=models.Q(("kind__in", KINDS)), name=NAME)
        ),
    ]
