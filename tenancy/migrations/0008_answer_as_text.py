"""An answer that is kept may hold a NUL (W1)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """One column, with the answers that it has."""

    dependencies = [("tenancy", "0007_notices")]
    operations = [migrations.AlterField("idempotencykey", "answer", models.TextField(null=True))]
