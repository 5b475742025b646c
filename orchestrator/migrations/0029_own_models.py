"""Models that a tenant names itself are one more way out, and wait for a second person as others do
(R-TOOL-22)."""

from django.db import migrations, models

WAYS = ["web", "databases", "mail", "models"]
KINDS = ["change", "admit", "declare", *WAYS]


def known(table: str, name: str, values: list[str]) -> list[migrations.operations.base.Operation]:
    """The kind is one of these."""
    check = models.CheckConstraint(condition=models.Q(("kind__in", values)), name=name)
    return [migrations.RemoveConstraint(table, name), migrations.AddConstraint(table, check)]


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0028_renewed_one_by_one")]

    operations = [
        *known("outside", "outside_kind_known", WAYS),
        *known("toolproposal", "toolproposal_kind_known", KINDS),
    ]
