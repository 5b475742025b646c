"""Decisions and grant uses are append-only; a request only ever leaves pending, once (R-APPR-2)."""

from django.db import migrations

from tenancy.db.integrity_guards import append_only, grant_table_rights, row_security, same_tenant_key

ONCE = """
CREATE FUNCTION approvals_request_once() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF TG_OP = 'DELETE' OR OLD.status <> 'pending'
     OR (to_jsonb(NEW) - 'status' - 'settled_at' - 'outcome' - 'granted_action' - 'ended_because')
        <> (to_jsonb(OLD) - 'status' - 'settled_at' - 'outcome' - 'granted_action' - 'ended_because') THEN
    RAISE EXCEPTION 'a request only ever leaves pending, once' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.status = 'decided' AND NOT EXISTS (SELECT 1 FROM public.approvals_decision
       WHERE tenant_id = NEW.tenant_id AND request_id = NEW.id AND kind = NEW.outcome) THEN
    RAISE EXCEPTION 'a request is decided by a decision' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER request_once BEFORE UPDATE OR DELETE ON approvals_request
  FOR EACH ROW EXECUTE FUNCTION approvals_request_once();
CREATE TRIGGER never_truncated BEFORE TRUNCATE ON approvals_request
  FOR EACH STATEMENT EXECUTE FUNCTION interlock_append_only();
"""
# A question is the submitter's to answer; on everything else somebody else decides, and on the packet that is asked.
ANOTHER = """
CREATE FUNCTION approvals_decision_by_another() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM public.approvals_request
       WHERE tenant_id = NEW.tenant_id AND id = NEW.request_id AND packet_digest = NEW.packet_digest
         AND (kind = 'clarification') = (NEW.kind = 'answer')
         AND (kind = 'clarification') = (submitter = NEW.principal OR submitter_owner = NEW.owner)) THEN
    RAISE EXCEPTION 'this decision is not this person''s to make' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER decision_by_another BEFORE INSERT ON approvals_decision
  FOR EACH ROW EXECUTE FUNCTION approvals_decision_by_another();
"""


class Migration(migrations.Migration):
    """Guards after the tables."""

    dependencies = [("approvals", "0001_initial"), ("tenancy", "0002_guards")]
    operations = [
        *(row_security(f"approvals_{table}") for table in ("request", "decision", "grantuse")),
        *(append_only(f"approvals_{table}") for table in ("decision", "grantuse")),
        migrations.RunSQL(ONCE, "DROP FUNCTION approvals_request_once() CASCADE;"),
        migrations.RunSQL(ANOTHER, "DROP FUNCTION approvals_decision_by_another() CASCADE;"),
        grant_table_rights("approvals_request", "SELECT, INSERT, UPDATE"),
        grant_table_rights("approvals_decision", "SELECT, INSERT"),
        grant_table_rights("approvals_grantuse", "SELECT, INSERT"),
        same_tenant_key("approvals_decision", "request_id", "approvals_request"),
        same_tenant_key("approvals_grantuse", "id", "approvals_request"),
    ]
