"""Whoever had a run begun again decides on it no more than its submitter does (R-APPR-5, R-SESS-9)."""

from django.db import migrations, models

NOT_THEIRS = """
CREATE FUNCTION approvals_not_the_retriers() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM public.approvals_request
       WHERE tenant_id = NEW.tenant_id AND id = NEW.request_id AND kind <> 'clarification'
         AND (retrier = NEW.principal OR retrier_owner = NEW.owner)) THEN
    RAISE EXCEPTION 'this decision is not this person''s to make' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER decision_not_the_retriers BEFORE INSERT ON approvals_decision
  FOR EACH ROW EXECUTE FUNCTION approvals_not_the_retriers();
CREATE TRIGGER deferral_not_the_retriers BEFORE INSERT ON approvals_deferral
  FOR EACH ROW EXECUTE FUNCTION approvals_not_the_retriers();
"""


class Migration(migrations.Migration):
    """Two columns and what they mean."""

    dependencies = [("approvals", "0007_undo")]
    operations = [
        migrations.AddField("request", "retrier", models.UUIDField(null=True)),
        migrations.AddField("request", "retrier_owner", models.UUIDField(null=True)),
        migrations.RunSQL(NOT_THEIRS, "DROP FUNCTION approvals_not_the_retriers() CASCADE;"),
    ]
