"""A run keeps what it was admitted with: asked of statements that name one of these columns, and of no others.

A trigger's condition is read from its stored text in every statement; one over ten columns cost a commit more
than the update that it looked at. The conditions are the same as before.
"""

from django.db import migrations

KEPT = ("tenant_id", "id", "task_id", "workflow_version_id", "manifest_digest", "submitted_by", "owner")
FORWARD = ("fence", "version", "record_number")
OTHER = " OR ".join(f"NEW.{column} <> OLD.{column}" for column in KEPT)
BACK = " OR ".join(f"NEW.{column} < OLD.{column}" for column in FORWARD)
STAYS = f"""
DROP TRIGGER run_stays ON orchestrator_run;
CREATE TRIGGER run_stays BEFORE UPDATE OF {", ".join(KEPT)} ON orchestrator_run FOR EACH ROW
  WHEN ({OTHER}) EXECUTE FUNCTION orchestrator_run_stays();
CREATE TRIGGER run_goes_on BEFORE UPDATE OF {", ".join(FORWARD)} ON orchestrator_run FOR EACH ROW
  WHEN ({BACK}) EXECUTE FUNCTION orchestrator_run_stays();
"""
STAYED = f"""
DROP TRIGGER run_goes_on ON orchestrator_run;
DROP TRIGGER run_stays ON orchestrator_run;
CREATE TRIGGER run_stays BEFORE UPDATE ON orchestrator_run FOR EACH ROW
  WHEN ({OTHER} OR {BACK}) EXECUTE FUNCTION orchestrator_run_stays();
"""


class Migration(migrations.Migration):
    """Two triggers for one; the function stays."""

    dependencies = [("orchestrator", "0030_review_queue")]
    operations = [migrations.RunSQL(STAYS, STAYED)]
