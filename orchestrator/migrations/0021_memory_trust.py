"""Whether the words of a proposal are to be trusted, beside the facts it names (R-MEM-2). Of what was proposed
before nobody knows: untrusted."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("orchestrator", "0020_review_items"),
    ]

    operations = [
        migrations.AddField(
            model_name="memoryproposal",
            name="trust",
            field=models.CharField(default="untrusted", max_length=9),
        ),
        migrations.AddConstraint(
            model_name="memoryproposal",
            constraint=models.CheckConstraint(
                condition=models.Q(("trust__in", ["trusted", "untrusted"])),
                name="memoryproposal_trust_known",
            ),
        ),
    ]
