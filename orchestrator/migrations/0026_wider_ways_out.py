"""Wider databases and mail wait for a second person too, and what waits about something that is another by now
is settled as outdated (R-TOOL-4)."""

from django.db import migrations, models

TABLE = "toolproposal"
KINDS = ["change", "admit", "declare", "web", "databases", "mail"]
STATUSES = ["open", "agreed", "refused", "withdrawn", "outdated"]
# A column that a trigger reads is not changed under it.
FREE = "DROP TRIGGER proposal_stays ON orchestrator_toolproposal;"
STAYS = """
CREATE TRIGGER proposal_stays BEFORE UPDATE ON orchestrator_toolproposal FOR EACH ROW
  WHEN (OLD.status <> 'open' OR NEW.tenant_id <> OLD.tenant_id OR NEW.id <> OLD.id OR NEW.kind <> OLD.kind
        OR NEW.tool <> OLD.tool OR NEW.tag <> OLD.tag OR NEW.body <> OLD.body OR NEW.weaker <> OLD.weaker
        OR NEW.reason <> OLD.reason OR NEW.by <> OLD.by OR NEW.owner <> OLD.owner OR NEW.at <> OLD.at)
  EXECUTE FUNCTION orchestrator_proposal_stays();
"""


def known(field: str, values: list[str]) -> list[migrations.operations.base.Operation]:
    """The column holds one of these."""
    name = f"toolproposal_{field}_known"
    check = models.CheckConstraint(condition=models.Q((f"{field}__in", values)), name=name)
    return [migrations.RemoveConstraint(TABLE, name), migrations.AddConstraint(TABLE, check)]


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0025_web_proposals")]

    operations = [
        migrations.RunSQL(FREE, STAYS),
        migrations.AlterField(TABLE, "kind", models.CharField(max_length=12)),
        *known("kind", KINDS),
        *known("status", STATUSES),
        migrations.RunSQL(STAYS, FREE),
    ]
