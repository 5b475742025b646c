"""Of what an endpoint answered only the length is kept: the beginning of it, which stood here, goes (W3)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenancy", "0011_narrow_keys")]

    operations = [
        migrations.RemoveField(model_name="webhookattempt", name="said"),
        migrations.AddField(
            model_name="webhookattempt", name="length", field=models.PositiveIntegerField(null=True)
        ),
    ]
