"""How many people must agree stands in the decision, and fewer than that settle nothing (R-APPR-5)."""

from django.db import migrations, models

# An approval is to the packet, whose quorum the request has; an edit is to arguments of its own.
# Words that were said before have no quorum; the one that settles has.
KEPT = """
CREATE FUNCTION approvals_decision_quorum() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF (NEW.kind IN ('approve', 'edit')) <> (coalesce(NEW.quorum, 0) >= 1)
     OR (NEW.arguments IS NULL AND NEW.quorum IS NOT NULL AND NOT EXISTS (SELECT 1 FROM public.approvals_request
           WHERE tenant_id = NEW.tenant_id AND id = NEW.request_id AND greatest(quorum, 1) = NEW.quorum))
     OR EXISTS (SELECT 1 FROM public.approvals_decision
           WHERE tenant_id = NEW.tenant_id AND request_id = NEW.request_id AND quorum <> NEW.quorum
             AND arguments IS NOT DISTINCT FROM NEW.arguments) THEN
    RAISE EXCEPTION 'a word that agrees says how many people must' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER decision_quorum BEFORE INSERT ON approvals_decision
  FOR EACH ROW EXECUTE FUNCTION approvals_decision_quorum();
"""
ENOUGH = """
CREATE FUNCTION approvals_request_enough() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM public.approvals_decision AS d
       JOIN public.approvals_decision AS o ON o.tenant_id = d.tenant_id AND o.request_id = d.request_id
        AND o.kind IN ('approve', 'edit') AND o.arguments IS NOT DISTINCT FROM d.arguments
      WHERE d.tenant_id = NEW.tenant_id AND d.request_id = NEW.id AND d.kind = NEW.outcome
      GROUP BY d.arguments HAVING count(DISTINCT o.owner) >= max(o.quorum)) THEN
    RAISE EXCEPTION 'fewer people agreed than must' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER request_enough BEFORE UPDATE ON approvals_request FOR EACH ROW
  WHEN (NEW.status = 'decided' AND NEW.outcome IN ('approve', 'edit'))
  EXECUTE FUNCTION approvals_request_enough();
"""


class Migration(migrations.Migration):
    dependencies = [("approvals", "0012_queues")]

    operations = [
        migrations.AddField(
            model_name="decision",
            name="quorum",
            field=models.PositiveSmallIntegerField(null=True),
        ),
        migrations.RunSQL(KEPT, "DROP FUNCTION approvals_decision_quorum() CASCADE;"),
        migrations.RunSQL(ENOUGH, "DROP FUNCTION approvals_request_enough() CASCADE;"),
    ]
