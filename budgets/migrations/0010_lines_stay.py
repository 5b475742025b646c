"""A line stays with its account and dimension: asked of statements that name one of these columns, and of no
others. The condition is read from its stored text in every statement that moves a line."""

from django.db import migrations

KEPT = ("account_id", "dimension", "tenant_id", "id")
OTHER = " OR ".join(f"NEW.{column} <> OLD.{column}" for column in KEPT)
AWAY = "DROP TRIGGER budgets_line_stays ON budgets_line;"
STAYS = f"""{AWAY}
CREATE TRIGGER budgets_line_stays BEFORE UPDATE OF {", ".join(KEPT)} ON budgets_line FOR EACH ROW
  WHEN ({OTHER}) EXECUTE FUNCTION budgets_line_identity();
"""
STAYED = f"""{AWAY}
CREATE TRIGGER budgets_line_stays BEFORE UPDATE ON budgets_line FOR EACH ROW
  WHEN ({OTHER}) EXECUTE FUNCTION budgets_line_identity();
"""


class Migration(migrations.Migration):
    """The trigger anew; the function stays."""

    dependencies = [("budgets", "0009_lanes_by_account")]
    operations = [migrations.RunSQL(STAYS, STAYED)]
