"""A tenant's queues are rows; a membership names some of them, or `*` (R-SEC-11, R-APPR-5)."""

import django.db.models.deletion
import tenancy.db.ids
from django.db import migrations, models
from tenancy.db.integrity_guards import grant_table_rights, row_security

TABLE = "tenancy_queue"

# What memberships name, and what every tenant has. The owner's own policies are those of any tenant, so the rows are
# read and written without them for a moment.
FILL = """
ALTER TABLE tenancy_membership NO FORCE ROW LEVEL SECURITY;
INSERT INTO tenancy_queue (id, tenant_id, name, description, created_at)
SELECT gen_random_uuid(), t.id, s.name, s.description, now() FROM tenancy_tenant t, (VALUES
  ('operations', 'Calls of tools that name no other queue.'),
  ('messages', 'Messages that leave the house.'),
  ('finance', 'Payments and whatever else moves money.'),
  ('support', 'Cases of customers.'),
  ('budget', 'Runs that ask for more budget.'),
  ('reconciliation', 'Calls of which nobody knows whether they took effect.'),
  ('submitter', 'Questions to whoever submitted the task.')
) s(name, description);
INSERT INTO tenancy_queue (id, tenant_id, name, description, created_at)
SELECT gen_random_uuid(), m.tenant_id, m.name, '', now()
  FROM (SELECT DISTINCT tenant_id, unnest(queues) AS name FROM tenancy_membership) m
 WHERE m.name <> '*'
ON CONFLICT (tenant_id, name) DO NOTHING;
ALTER TABLE tenancy_membership FORCE ROW LEVEL SECURITY;
SET CONSTRAINTS ALL IMMEDIATE;
SET CONSTRAINTS ALL DEFERRED;
"""

# A queue is never deleted and never gets another name; one that is made is called as queues are. One that a membership
# names, or that runs themselves ask in, is not closed.
GUARDS = """
CREATE FUNCTION tenancy_queue_stays() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  RAISE EXCEPTION '% of tenancy_queue is refused: a queue stays, with its name', TG_OP
    USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER queue_stays BEFORE DELETE ON tenancy_queue FOR EACH ROW EXECUTE FUNCTION tenancy_queue_stays();
CREATE TRIGGER queue_never_truncated BEFORE TRUNCATE ON tenancy_queue
  FOR EACH STATEMENT EXECUTE FUNCTION tenancy_queue_stays();
CREATE TRIGGER queue_keeps_name BEFORE UPDATE ON tenancy_queue FOR EACH ROW
  WHEN ((OLD.id, OLD.tenant_id, OLD.name, OLD.created_at) IS DISTINCT FROM (NEW.id, NEW.tenant_id, NEW.name,
         NEW.created_at) OR OLD.created_by IS DISTINCT FROM NEW.created_by)
  EXECUTE FUNCTION tenancy_queue_stays();

CREATE FUNCTION tenancy_queue_named() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  RAISE EXCEPTION 'a queue is not called so' USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER queue_named BEFORE INSERT ON tenancy_queue FOR EACH ROW
  WHEN (NEW.name !~ '^[a-z][a-z0-9_-]{0,63}$') EXECUTE FUNCTION tenancy_queue_named();

CREATE FUNCTION tenancy_queue_closes() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  IF NEW.name IN ('budget', 'reconciliation', 'submitter') THEN
    RAISE EXCEPTION 'runs themselves ask in the queue %', NEW.name USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF EXISTS (SELECT FROM tenancy_membership m WHERE m.tenant_id = NEW.tenant_id AND NEW.name = ANY (m.queues)) THEN
    RAISE EXCEPTION 'a membership names the queue %', NEW.name USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_closes BEFORE UPDATE ON tenancy_queue FOR EACH ROW
  WHEN (OLD.closed_at IS NULL AND NEW.closed_at IS NOT NULL) EXECUTE FUNCTION tenancy_queue_closes();

CREATE FUNCTION tenancy_membership_queues() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
  found text[];
BEGIN
  SELECT coalesce(array_agg(q.name), '{}') INTO found FROM (
    SELECT name FROM tenancy_queue
     WHERE tenant_id = NEW.tenant_id AND name = ANY (NEW.queues) AND closed_at IS NULL
     ORDER BY name FOR NO KEY UPDATE
  ) q;
  IF NOT NEW.queues::text[] <@ found THEN
    RAISE EXCEPTION 'a membership names open queues of its tenant, or * alone'
      USING ERRCODE = 'foreign_key_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER membership_queues BEFORE INSERT OR UPDATE OF queues, tenant_id ON tenancy_membership FOR EACH ROW
  WHEN (NEW.queues <> '{}' AND NEW.queues <> '{*}') EXECUTE FUNCTION tenancy_membership_queues();
"""
UNDO = """
DROP TRIGGER membership_queues ON tenancy_membership; DROP FUNCTION tenancy_membership_queues();
DROP TRIGGER queue_closes ON tenancy_queue; DROP FUNCTION tenancy_queue_closes();
DROP TRIGGER queue_named ON tenancy_queue; DROP FUNCTION tenancy_queue_named();
DROP TRIGGER queue_keeps_name ON tenancy_queue; DROP TRIGGER queue_never_truncated ON tenancy_queue;
DROP TRIGGER queue_stays ON tenancy_queue; DROP FUNCTION tenancy_queue_stays();
"""
CHANGE = "GRANT UPDATE (description, closed_at, closed_by) ON tenancy_queue TO interlock_app;"


class Migration(migrations.Migration):
    """One table, what names it, and what it refuses."""

    dependencies = [("tenancy", "0025_links_elsewhere")]
    operations = [
        migrations.CreateModel(
            name="Queue",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=64)),
                ("description", models.CharField(blank=True, default="", max_length=300)),
                ("created_by", models.UUIDField(null=True)),
                ("created_at", models.DateTimeField()),
                ("closed_at", models.DateTimeField(null=True)),
                ("closed_by", models.UUIDField(null=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_queue_of_tenant"),
                    models.UniqueConstraint(fields=("tenant", "name"), name="queue_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("closed_at__isnull", False), ("closed_by", None), _connector="OR"
                        ),
                        name="queue_closed_by_somebody_has_a_time",
                    ),
                ],
            },
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        row_security(TABLE),
        grant_table_rights(TABLE, "SELECT, INSERT"),
        migrations.RunSQL(CHANGE, migrations.RunSQL.noop),
        migrations.RunSQL(GUARDS, UNDO),
    ]
