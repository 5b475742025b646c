"""A tool's raised risk class beside the emergency stops: every commit reads both in one go (R-TOOL-4)."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0004_listing")]

    operations = [
        migrations.AddField(
            model_name="emergencystop",
            name="risk",
            field=models.CharField(blank=True, default="", max_length=16),
        ),
        migrations.RemoveConstraint(model_name="emergencystop", name="stop_scope_known"),
        migrations.AddConstraint(
            model_name="emergencystop",
            constraint=models.CheckConstraint(
                condition=Q(scope__in=["global", "tenant", "workflow", "tool", "risk"]),
                name="stop_scope_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="emergencystop",
            constraint=models.CheckConstraint(
                condition=Q(scope="risk") & ~Q(risk="") | ~Q(scope="risk") & Q(risk=""),
                name="stop_risk_of_risk",
            ),
        ),
    ]
