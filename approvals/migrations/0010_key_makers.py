"""What a key submits or decides is also the deed of everybody who was shown its secret (R-APPR-5)."""

from typing import Final

from django.db import migrations

SAME: Final = """
CREATE FUNCTION approvals_same_hands(house uuid, principal uuid, owner uuid, principals uuid[], owners uuid[])
  RETURNS boolean LANGUAGE sql STABLE SET search_path = pg_catalog AS $$
  SELECT principal = ANY (principals) OR EXISTS (
    (SELECT owner UNION SELECT m.person_id FROM public.tenancy_keymaker m
       WHERE m.tenant_id = house AND m.principal_id = principal)
    INTERSECT
    (SELECT unnest(owners) UNION SELECT m.person_id FROM public.tenancy_keymaker m
       WHERE m.tenant_id = house AND m.principal_id = ANY (principals)))
$$;
REVOKE ALL ON FUNCTION approvals_same_hands(uuid, uuid, uuid, uuid[], uuid[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION approvals_same_hands(uuid, uuid, uuid, uuid[], uuid[]) TO interlock_app;
"""
ANOTHER: Final = """
CREATE OR REPLACE FUNCTION approvals_decision_by_another() RETURNS trigger LANGUAGE plpgsql
  SET search_path = pg_catalog AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM public.approvals_request
       WHERE tenant_id = NEW.tenant_id AND id = NEW.request_id AND packet_digest = NEW.packet_digest
         AND (kind = 'clarification') = (NEW.kind = 'answer')
         AND (kind = 'clarification') = ({own})) THEN
    RAISE EXCEPTION 'this decision is not this person''s to make' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
"""
NOT_THEIRS: Final = """
CREATE OR REPLACE FUNCTION approvals_not_the_retriers() RETURNS trigger LANGUAGE plpgsql
  SET search_path = pg_catalog AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM public.approvals_request
       WHERE tenant_id = NEW.tenant_id AND id = NEW.request_id AND kind <> 'clarification' AND ({own})) THEN
    RAISE EXCEPTION 'this decision is not this person''s to make' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
"""
HANDS: Final = "public.approvals_same_hands(NEW.tenant_id, NEW.principal, NEW.owner, {principals}, {owners})"
SUBMITTER: Final = HANDS.format(principals="ARRAY[submitter]", owners="ARRAY[submitter_owner]")
RETRIERS: Final = HANDS.format(principals="retriers", owners="retrier_owners")


class Migration(migrations.Migration):
    """One function, and the two guards that ask it."""

    dependencies = [("approvals", "0009_retriers"), ("tenancy", "0009_relations")]
    operations = [
        migrations.RunSQL(
            SAME + ANOTHER.format(own=SUBMITTER) + NOT_THEIRS.format(own=RETRIERS),
            ANOTHER.format(own="submitter = NEW.principal OR submitter_owner = NEW.owner")
            + NOT_THEIRS.format(own="NEW.principal = ANY (retriers) OR NEW.owner = ANY (retrier_owners)")
            + "DROP FUNCTION approvals_same_hands(uuid, uuid, uuid, uuid[], uuid[]);",
        )
    ]
