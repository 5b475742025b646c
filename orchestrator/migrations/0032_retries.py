"""A run can be begun again once, after one of its records, when it has ended without its result (R-SESS-9)."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

from tenancy.db.integrity_guards import same_tenant_key

KEPT = ("retry_of_id", "retry_record", "retried_by", "retry_key")
OTHER = " OR ".join(f"NEW.{column} IS DISTINCT FROM OLD.{column}" for column in KEPT)
RETRIES = f"""
CREATE FUNCTION orchestrator_run_retries() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM public.orchestrator_run
       WHERE tenant_id = NEW.tenant_id AND id = NEW.retry_of_id AND task_id = NEW.task_id
         AND finished_at IS NOT NULL AND terminal_code <> 'SUCCESS' AND record_number >= NEW.retry_record) THEN
    RAISE EXCEPTION 'only an ended run without its result is retried, after one of its records'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER run_retries BEFORE INSERT ON orchestrator_run FOR EACH ROW
  WHEN (NEW.retry_of_id IS NOT NULL) EXECUTE FUNCTION orchestrator_run_retries();
CREATE TRIGGER run_began BEFORE UPDATE OF {", ".join(KEPT)} ON orchestrator_run FOR EACH ROW
  WHEN ({OTHER}) EXECUTE FUNCTION orchestrator_run_stays();
"""


class Migration(migrations.Migration):
    """Four columns, and what holds of them."""

    dependencies = [("orchestrator", "0031_run_stays")]
    operations = [
        migrations.AddField(
            "run",
            "retry_of",
            models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="retries",
                to="orchestrator.run",
            ),
        ),
        migrations.AddField("run", "retry_record", models.BigIntegerField(null=True)),
        migrations.AddField("run", "retried_by", models.UUIDField(null=True)),
        migrations.AddField("run", "retry_key", models.CharField(blank=True, default="", max_length=255)),
        migrations.AddConstraint(
            "run", models.UniqueConstraint(fields=["tenant", "retry_of"], name="run_retried_once")
        ),
        migrations.AddConstraint(
            "run",
            models.CheckConstraint(
                condition=Q(retry_of=None, retry_record=None, retried_by=None, retry_key="")
                | Q(retry_of__isnull=False, retry_record__gte=0, retried_by__isnull=False),
                name="run_retry_is_whole",
            ),
        ),
        same_tenant_key("orchestrator_run", "retry_of_id", "orchestrator_run"),
        migrations.RunSQL(
            RETRIES,
            "DROP TRIGGER run_began ON orchestrator_run; DROP FUNCTION orchestrator_run_retries() CASCADE;",
        ),
    ]
