"""How long what was sent to endpoints is kept, and the one way in which it goes (R-API-6, X7)."""

import django.db.models.deletion
import tenancy.db.ids
from django.db import migrations, models
from tenancy.db.integrity_guards import append_only, create_definer_function, grant_table_rights, row_security

KEEPING = "tenancy_webhookkeeping"
FORGETTABLE = ("tenancy_webhookmessage", "tenancy_webhookattempt")
# Even the function's owner removes nothing young, and changes nothing.
ONLY_FORGOTTEN = """
CREATE FUNCTION tenancy_only_forgotten() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF TG_OP = 'DELETE' AND current_user = 'interlock_owner'
     AND OLD.at < clock_timestamp() - interval '12 hours' THEN RETURN OLD; END IF;
  RAISE EXCEPTION '% of % is refused: what is old is forgotten, by the days that are set', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'integrity_constraint_violation';
END $$;
"""
GUARD = """
DROP TRIGGER append_only ON {table};
CREATE TRIGGER only_forgotten BEFORE UPDATE OR DELETE ON {table}
  FOR EACH ROW EXECUTE FUNCTION tenancy_only_forgotten();
"""
UNGUARD = """
DROP TRIGGER only_forgotten ON {table};
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {table}
  FOR EACH ROW EXECUTE FUNCTION interlock_append_only();
"""
# The days are those that administrators have written down, 90 where they have not: nobody passes them in.
# What still waits is never taken, whatever its age; who sends one of them at this moment keeps it for now.
FORGET = """
WITH here AS (SELECT nullif(current_setting('interlock.tenant', true), '')::uuid AS id),
kept AS (
  SELECT make_interval(days => coalesce((SELECT k.days FROM tenancy_webhookkeeping k, here
           WHERE k.tenant_id = here.id ORDER BY k.version DESC LIMIT 1), 90)) AS long),
old AS (
  SELECT d.id, d.message_id FROM tenancy_webhookdelivery d, here, kept
   WHERE d.tenant_id = here.id AND d.state <> 'waiting' AND d.done_at < clock_timestamp() - kept.long
   ORDER BY d.done_at LIMIT least(most, 1000) FOR UPDATE OF d SKIP LOCKED),
tries AS (
  DELETE FROM tenancy_webhookattempt a USING old, here
   WHERE a.tenant_id = here.id AND a.delivery_id = old.id),
gone AS (
  DELETE FROM tenancy_webhookdelivery d USING old, here
   WHERE d.tenant_id = here.id AND d.id = old.id RETURNING d.id),
unread AS (
  DELETE FROM tenancy_webhookmessage m USING here
   WHERE m.tenant_id = here.id AND m.id IN (SELECT message_id FROM old)
     AND NOT EXISTS (SELECT FROM tenancy_webhookdelivery d
                      WHERE d.tenant_id = here.id AND d.message_id = m.id
                        AND d.id NOT IN (SELECT id FROM old)))
SELECT count(*) FROM gone
"""


class Migration(migrations.Migration):
    dependencies = [("tenancy", "0005_secret_life")]

    operations = [
        migrations.CreateModel(
            name="WebhookKeeping",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("version", models.PositiveIntegerField()),
                ("days", models.PositiveSmallIntegerField()),
                ("reason", models.CharField(max_length=500)),
                ("by", models.UUIDField(null=True)),
                ("at", models.DateTimeField()),
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
                    models.UniqueConstraint(fields=("tenant", "id"), name="tenancy_webhookkeeping_of_tenant"),
                    models.UniqueConstraint(fields=("tenant", "version"), name="webhook_keeping_once"),
                    models.CheckConstraint(
                        condition=models.Q(("days__gte", 1), ("days__lte", 3650)),
                        name="webhook_keeping_bounded",
                    ),
                ],
            },
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(
                condition=models.Q(("state", "waiting"), _negated=True),
                fields=["tenant", "done_at"],
                name="webhook_done",
            ),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(fields=["tenant", "message"], name="webhook_of_message"),
        ),
        row_security(KEEPING),
        grant_table_rights(KEEPING, "SELECT, INSERT"),
        append_only(KEEPING),
        migrations.RunSQL(ONLY_FORGOTTEN, "DROP FUNCTION tenancy_only_forgotten();"),
        *(migrations.RunSQL(GUARD.format(table=t), UNGUARD.format(table=t)) for t in FORGETTABLE),
        create_definer_function("forget_webhooks", "most integer", "bigint", FORGET, volatility="VOLATILE"),
    ]
