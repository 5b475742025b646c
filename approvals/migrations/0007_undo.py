"""A yes that can be taken back for some seconds, and for how many (docs/console.md)."""

import django.db.models.deletion
import tenancy.db.ids
from django.db import migrations, models
from django.db.models import Q
from tenancy.db.migration_operations import MadeTogether
from tenancy.db.integrity_guards import (
    append_only,
    create_cross_tenant_policy,
    create_definer_function,
    grant_table_rights,
    row_security,
    same_tenant_key,
)

WINDOW, DEFERRAL = "approvals_undowindow", "approvals_deferral"
# Made by another than the submitter, on what is asked and still open; it ends once, and nothing else changes.
ONCE = """
CREATE FUNCTION approvals_deferral_once() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.fate <> 'stands' OR NEW.kind NOT IN ('approve', 'edit') OR NEW.effective_at <= NEW.at
       OR NEW.effective_at > NEW.at + interval '10 seconds'
       OR NOT EXISTS (SELECT 1 FROM public.approvals_request
            WHERE tenant_id = NEW.tenant_id AND id = NEW.request_id AND run_id = NEW.run_id
              AND packet_digest = NEW.packet_digest AND kind = 'action' AND status = 'pending'
              AND risk IN ('read_only', 'local_write')
              AND submitter <> NEW.principal AND submitter_owner <> NEW.owner) THEN
      RAISE EXCEPTION 'this yes is not to be kept back' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
  END IF;
  IF TG_OP = 'DELETE' OR OLD.fate <> 'stands'
     OR (to_jsonb(NEW) - 'fate' - 'ended_at' - 'ended_by' - 'ended_because')
        <> (to_jsonb(OLD) - 'fate' - 'ended_at' - 'ended_by' - 'ended_because') THEN
    RAISE EXCEPTION 'a yes that is kept back only ever ends, once'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER deferral_once BEFORE INSERT OR UPDATE OR DELETE ON approvals_deferral
  FOR EACH ROW EXECUTE FUNCTION approvals_deferral_once();
CREATE TRIGGER never_truncated BEFORE TRUNCATE ON approvals_deferral
  FOR EACH STATEMENT EXECUTE FUNCTION interlock_append_only();
"""
# While one person's yes stands nobody else's word is taken: of two there is one winner.
ALONE = """
CREATE FUNCTION approvals_decision_alone() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM public.approvals_deferral
       WHERE tenant_id = NEW.tenant_id AND request_id = NEW.request_id AND fate = 'stands') THEN
    RAISE EXCEPTION 'somebody''s yes to this request stands' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER decision_alone BEFORE INSERT ON approvals_decision
  FOR EACH ROW EXECUTE FUNCTION approvals_decision_alone();
"""
# Each tenant has its turn, and within one in no order: what cannot be taken must not stand before the others
# for ever.
DUE = """
SELECT run_id FROM (
  SELECT run_id, row_number() OVER (PARTITION BY tenant_id ORDER BY random()) AS turn
    FROM (SELECT DISTINCT tenant_id, run_id FROM approvals_deferral
           WHERE fate = 'stands' AND effective_at <= clock_timestamp()) AS due
) AS turns ORDER BY turn, random() LIMIT least(n, 100)
"""
TENANT = models.ForeignKey(
    db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="tenancy.tenant"
)
ID = models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)


class Migration(MadeTogether):
    """Two tables with their guards."""

    dependencies = [("approvals", "0006_revising"), ("tenancy", "0002_guards")]

    operations = [
        migrations.CreateModel(
            name="UndoWindow",
            fields=[
                ("id", ID.clone()),
                ("version", models.PositiveIntegerField()),
                ("seconds", models.PositiveSmallIntegerField()),
                ("reason", models.CharField(max_length=500)),
                ("by", models.UUIDField()),
                ("at", models.DateTimeField()),
                ("tenant", TENANT.clone()),
            ],
            options={
                "abstract": False,
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="approvals_undowindow_of_tenant"),
                    models.UniqueConstraint(fields=("tenant", "version"), name="undowindow_once"),
                    models.CheckConstraint(condition=Q(seconds__lte=10), name="undowindow_at_most_ten"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Deferral",
            fields=[
                ("id", ID.clone()),
                ("run_id", models.UUIDField()),
                ("principal", models.UUIDField()),
                ("owner", models.UUIDField()),
                ("kind", models.CharField(max_length=16)),
                ("reason", models.TextField(blank=True)),
                ("arguments", models.BinaryField(null=True)),
                ("packet_digest", models.CharField(max_length=64)),
                ("at", models.DateTimeField()),
                ("effective_at", models.DateTimeField()),
                (
                    "fate",
                    models.CharField(
                        choices=[(fate, fate) for fate in ("stands", "taken", "undone", "lapsed")],
                        default="stands",
                        max_length=8,
                    ),
                ),
                ("ended_at", models.DateTimeField(null=True)),
                ("ended_by", models.UUIDField(null=True)),
                ("ended_because", models.CharField(blank=True, max_length=300)),
                (
                    "request",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="deferrals",
                        to="approvals.request",
                    ),
                ),
                ("tenant", TENANT.clone()),
            ],
            options={
                "abstract": False,
                "indexes": [
                    models.Index(fields=["tenant", "request", "at"], name="deferral_of_request"),
                    models.Index(fields=["tenant", "at"], name="deferral_lately"),
                    models.Index(fields=["tenant", "ended_at"], name="deferral_ended_lately"),
                    models.Index(fields=["effective_at"], condition=Q(fate="stands"), name="deferral_due"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "id"), name="approvals_deferral_of_tenant"),
                    models.UniqueConstraint(
                        condition=Q(fate="stands"), fields=("tenant", "request"), name="deferral_one_stands"
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            Q(("ended_at", None), ("fate", "stands")),
                            Q(Q(("fate", "stands"), _negated=True), ("ended_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="deferral_ended_has_a_time",
                    ),
                    models.CheckConstraint(
                        condition=Q(fate__in=["stands", "taken", "undone", "lapsed"]),
                        name="deferral_fate_is_known",
                    ),
                ],
            },
        ),
        *(row_security(table) for table in (WINDOW, DEFERRAL)),
        append_only(WINDOW),
        migrations.RunSQL(ONCE, "DROP FUNCTION approvals_deferral_once() CASCADE;"),
        migrations.RunSQL(ALONE, "DROP FUNCTION approvals_decision_alone() CASCADE;"),
        grant_table_rights(WINDOW, "SELECT, INSERT"),
        grant_table_rights(DEFERRAL, "SELECT, INSERT, UPDATE"),
        same_tenant_key(DEFERRAL, "request_id", "approvals_request"),
        create_cross_tenant_policy(DEFERRAL, "SELECT"),
        create_definer_function("deferred_runs", "n integer", "SETOF uuid", DUE, volatility="VOLATILE"),
    ]
