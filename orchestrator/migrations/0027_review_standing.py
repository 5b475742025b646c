"""What waits for a review is found by an index, however much was answered before (R-TOOL-19)."""

from django.db import migrations, models

ITEM = "orchestrator_reviewitem"
WORDS = """
CREATE FUNCTION orchestrator_only_answered() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND OLD.answered_at IS NULL
     AND (to_jsonb(NEW) - 'answered_at' - 'rank') = (to_jsonb(OLD) - 'answered_at' - 'rank')
     AND NEW.answered_at = (SELECT w.at FROM public.orchestrator_reviewword w
          WHERE w.tenant_id = NEW.tenant_id AND w.item_id = NEW.id AND w.kind = 'answered')
  THEN RETURN NEW; END IF;
  RAISE EXCEPTION '% of % is refused: an item is answered once, and nothing else of it changes',
    TG_OP, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
DROP TRIGGER append_only ON orchestrator_reviewitem;
"""
# Answers from before: row-level security holds the owner, too.
KNOWN = """
DO $$ DECLARE t uuid; BEGIN
  FOR t IN SELECT id FROM tenancy_tenant LOOP
    PERFORM set_config('interlock.tenant', t::text, true);
    UPDATE orchestrator_reviewitem i SET answered_at = w.at FROM orchestrator_reviewword w
     WHERE i.tenant_id = t AND w.tenant_id = t AND w.item_id = i.id AND w.kind = 'answered';
  END LOOP;
  PERFORM set_config('interlock.tenant', '', true);
END $$;
"""
GUARDS = """
CREATE TRIGGER only_answered BEFORE UPDATE OR DELETE ON orchestrator_reviewitem
  FOR EACH ROW EXECUTE FUNCTION orchestrator_only_answered();
CREATE FUNCTION orchestrator_note_answer() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  UPDATE public.orchestrator_reviewitem SET answered_at = NEW.at
   WHERE tenant_id = NEW.tenant_id AND id = NEW.item_id;
  RETURN NULL;
END $$;
CREATE TRIGGER answer_noted AFTER INSERT ON orchestrator_reviewword
  FOR EACH ROW WHEN (NEW.kind = 'answered') EXECUTE FUNCTION orchestrator_note_answer();
GRANT UPDATE (answered_at) ON orchestrator_reviewitem TO interlock_app;
"""
BACK = """
REVOKE UPDATE (answered_at) ON orchestrator_reviewitem FROM interlock_app;
DROP TRIGGER answer_noted ON orchestrator_reviewword;
DROP FUNCTION orchestrator_note_answer();
DROP TRIGGER only_answered ON orchestrator_reviewitem;
"""
AS_BEFORE = """
DROP FUNCTION orchestrator_only_answered();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON orchestrator_reviewitem
  FOR EACH ROW EXECUTE FUNCTION interlock_append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0026_wider_ways_out")]

    operations = [
        migrations.AddField("reviewitem", "answered_at", models.DateTimeField(null=True)),
        migrations.AddField(
            "reviewitem",
            "rank",
            models.GeneratedField(
                expression=models.Case(
                    models.When(severity="medium", then=models.Value(1)),
                    models.When(severity="high", then=models.Value(2)),
                    models.When(severity="critical", then=models.Value(3)),
                    default=models.Value(0),
                ),
                output_field=models.SmallIntegerField(),
                db_persist=True,
            ),
        ),
        migrations.RunSQL(WORDS, AS_BEFORE),
        migrations.RunSQL(KNOWN, migrations.RunSQL.noop),
        migrations.RunSQL(GUARDS, BACK),
        migrations.AddIndex(
            "reviewitem",
            models.Index(
                fields=["tenant", "-rank", "at", "id"],
                condition=models.Q(("answered_at", None)),
                name="review_open",
            ),
        ),
        migrations.AddIndex(
            "reviewitem",
            models.Index(
                fields=["tenant", "-answered_at", "-id"],
                condition=models.Q(("answered_at__isnull", False)),
                name="review_answered",
            ),
        ),
        migrations.AddIndex(
            "reviewitem", models.Index(fields=["tenant", "-at", "-id"], name="review_newest")
        ),
    ]
