"""How long a secret lasts, and where a new one is had (R-TOOL-13)."""

from django.db import migrations, models

from tenancy.db.integrity_guards import AUDITOR


class Migration(migrations.Migration):
    dependencies = [("tenancy", "0004_webhooks")]

    operations = [
        migrations.AddField("secret", "expires_at", models.DateTimeField(null=True)),
        migrations.AddField(
            "secret", "renews_at", models.CharField(blank=True, default="", max_length=2_000)
        ),
        migrations.AddField("secret", "renewal", models.BinaryField(default=b"")),
        migrations.RunSQL(
            f"GRANT SELECT (expires_at, renews_at) ON tenancy_secret TO {AUDITOR};",
            f"REVOKE SELECT (expires_at, renews_at) ON tenancy_secret FROM {AUDITOR};",
        ),
    ]
