"""Rules of signing in that ask for less wait for a second person as other loosenings do (R-SEC-11)."""

from django.db import migrations, models

TABLE, NAME = "toolproposal", "toolproposal_kind_known"
KINDS = [
    "change", "admit", "declare", "web", "databases", "mail", "models", "places", "ceilings", "boundary",
    "sign_in",
]  # fmt: skip


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0050_retired_boundaries")]

    operations = [
        migrations.RemoveConstraint(TABLE, NAME),
        migrations.AddConstraint(
            TABLE, models.CheckConstraint(condition=models.Q(("kind__in", KINDS)), name=NAME)
        ),
    ]
