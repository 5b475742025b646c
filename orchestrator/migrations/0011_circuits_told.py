"""What a commit reads of circuits: those in trouble, and the numbers of those that ever changed, by which a
late failure is known (R-BUDGET-13)."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0010_expectation")]

    operations = [
        migrations.RemoveIndex(model_name="circuitrow", name="circuit_in_trouble"),
        migrations.AddIndex(
            model_name="circuitrow",
            index=models.Index(
                fields=["tenant_id"], condition=Q(failures__gt=0) | Q(changes__gt=0), name="circuit_told"
            ),
        ),
    ]
