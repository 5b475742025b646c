"""A circuit in front of a tenant's own use of a provider, beside the one that all share (R-BUDGET-13)."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0022_tool_proposals")]

    operations = [
        migrations.RemoveConstraint(model_name="circuitrow", name="circuit_kind_known"),
        migrations.RemoveConstraint(model_name="circuitrow", name="circuit_of_whom"),
        migrations.AddConstraint(
            model_name="circuitrow",
            constraint=models.CheckConstraint(
                condition=Q(kind__in=["tool", "model", "use"]), name="circuit_kind_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="circuitrow",
            constraint=models.CheckConstraint(
                condition=Q(kind="model", tenant_id__isnull=True)
                | Q(kind__in=["tool", "use"], tenant_id__isnull=False),
                name="circuit_of_whom",
            ),
        ),
    ]
