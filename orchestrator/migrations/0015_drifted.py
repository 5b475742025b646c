"""A mark on tools whose answers do not fit their declared form any more (R-TOOL-14)."""

from django.db import migrations, models
from django.db.models import Q

SCOPES = ["global", "tenant", "workflow", "tool", "risk", "policy", "drift"]


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0014_workspace")]

    operations = [
        migrations.RemoveConstraint(model_name="emergencystop", name="stop_scope_known"),
        migrations.AddConstraint(
            model_name="emergencystop",
            constraint=models.CheckConstraint(condition=Q(scope__in=SCOPES), name="stop_scope_known"),
        ),
    ]
