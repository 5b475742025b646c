"""Who tries a circuit whose cooldown is over: where its worker dies, the run tries again at once
(R-BUDGET-13)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Two columns."""

    dependencies = [("orchestrator", "0040_abandoned_runs")]
    operations = [
        migrations.AddField(model_name="circuitrow", name="prober", field=models.UUIDField(null=True)),
        migrations.AddField(
            model_name="circuitrow", name="prober_fence", field=models.BigIntegerField(null=True)
        ),
        migrations.AddConstraint(
            model_name="circuitrow",
            constraint=models.CheckConstraint(
                condition=models.Q(prober__isnull=True, prober_fence__isnull=True)
                | models.Q(prober__isnull=False, prober_fence__isnull=False),
                name="circuit_prober_whole",
            ),
        ),
    ]
