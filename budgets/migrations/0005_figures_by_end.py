"""The dearest runs of a day are sought among those that ended in it (R-UI-12)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """One index."""

    dependencies = [("budgets", "0004_open_tranches")]
    operations = [
        migrations.AddIndex(
            model_name="runfigures",
            index=models.Index(
                fields=["tenant", "-ended_at"], include=["cost"], name="budgets_figures_by_end"
            ),
        ),
    ]
