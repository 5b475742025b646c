"""Sums over what runs hold now read the open tranches, not all there ever were (R-UI-12)."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    """One index."""

    dependencies = [("budgets", "0003_alerts")]
    operations = [
        migrations.AddIndex(
            model_name="tranche",
            index=models.Index(
                fields=["tenant", "day", "month"], condition=Q(closed_at=None), name="budgets_tranche_open"
            ),
        ),
    ]
