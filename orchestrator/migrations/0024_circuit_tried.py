"""When a person had a shared circuit tried: once in a cooldown, whoever asks (R-BUDGET-13)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0023_circuit_of_use")]

    operations = [
        migrations.AddField(model_name="circuitrow", name="tried_at", field=models.DateTimeField(null=True)),
    ]
