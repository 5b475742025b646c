"""A tranche ends with its day or its month, whichever ends first (R-BUDGET-9); a day's newest entries are read
from an index (R-UI-12)."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    """A wider key, and an index in the order of the ledger's page."""

    dependencies = [("budgets", "0005_figures_by_end")]
    operations = [
        migrations.RemoveConstraint(model_name="tranche", name="budgets_tranche_one_per_day"),
        migrations.AddConstraint(
            model_name="tranche",
            constraint=models.UniqueConstraint(
                fields=["tenant", "run_account", "day", "month"], name="budgets_tranche_one_a_window"
            ),
        ),
        migrations.RemoveIndex(model_name="entry", name="budgets_entry_of_day"),
        migrations.AddIndex(
            model_name="entry",
            index=models.Index(
                fields=["account_id", "-at", "-id"],
                condition=Q(month_id__isnull=False),
                name="budgets_entry_of_window",
            ),
        ),
    ]
