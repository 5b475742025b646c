"""Browsers' sessions, under the digest of their cookie, and what each tenant has of them (R-SEC-11).

The tables that were there before held the cookies' values: they are dropped, and everybody signs in once more.
"""

import django.db.models.deletion
import tenancy.db.ids
from django.conf import settings
from django.db import migrations, models
from tenancy.db.migration_operations import MadeTogether
from tenancy.db.integrity_guards import grant_table_rights, row_security

# A session begins when its person signs in, and never changes hands.
BEGINS = """
CREATE FUNCTION tenancy_session_begins() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF OLD.person_id IS NOT NULL THEN
    RAISE EXCEPTION 'a session never changes hands' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  NEW.started_at := clock_timestamp();
  NEW.last_seen_at := clock_timestamp();
  RETURN NEW;
END $$;
CREATE TRIGGER session_begins BEFORE UPDATE ON tenancy_browsersession FOR EACH ROW
  WHEN (OLD.person_id IS DISTINCT FROM NEW.person_id) EXECUTE FUNCTION tenancy_session_begins();
"""
NO_BEGINS = "DROP TRIGGER session_begins ON tenancy_browsersession; DROP FUNCTION tenancy_session_begins();"
# What was ended in a tenant stays so.
ENDED = """
CREATE FUNCTION tenancy_session_stays_ended() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  RAISE EXCEPTION 'a session that was ended stays so' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER session_stays_ended BEFORE UPDATE ON tenancy_tenantsession FOR EACH ROW
  WHEN (OLD.ended_at IS NOT NULL) EXECUTE FUNCTION tenancy_session_stays_ended();
"""
NO_ENDED = (
    "DROP TRIGGER session_stays_ended ON tenancy_tenantsession; DROP FUNCTION tenancy_session_stays_ended();"
)
# What a tenant has of a session goes with it, by PostgreSQL's own hand: row security does not keep that back.
GOES = """
ALTER TABLE tenancy_tenantsession ADD CONSTRAINT tenancy_tenantsession_session_id_goes
  FOREIGN KEY (session_id) REFERENCES tenancy_browsersession (id) ON DELETE CASCADE;
GRANT SELECT, INSERT, DELETE, UPDATE (digest, data, person_id, last_seen_at, address, browser)
  ON tenancy_browsersession TO interlock_app;
GRANT UPDATE (last_seen_at, address, browser, ended_at, ended_by) ON tenancy_tenantsession TO interlock_app;
"""
NO_GOES = """
ALTER TABLE tenancy_tenantsession DROP CONSTRAINT tenancy_tenantsession_session_id_goes;
REVOKE ALL ON tenancy_browsersession FROM interlock_app;
"""
OLD_TABLES = "DROP TABLE IF EXISTS usersessions_usersession, django_session;"


class Migration(MadeTogether):
    dependencies = [("tenancy", "0015_column_grants")]

    operations = [
        migrations.CreateModel(
            name="BrowserSession",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("digest", models.BinaryField(max_length=32, unique=True)),
                ("data", models.TextField()),
                ("started_at", models.DateTimeField()),
                ("last_seen_at", models.DateTimeField()),
                ("address", models.GenericIPAddressField(null=True)),
                ("browser", models.CharField(blank=True, default="", max_length=200)),
                (
                    "person",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="TenantSession",
            fields=[
                ("id", models.UUIDField(default=tenancy.db.ids.fresh_id, primary_key=True, serialize=False)),
                ("began_at", models.DateTimeField()),
                ("last_seen_at", models.DateTimeField()),
                ("address", models.GenericIPAddressField(null=True)),
                ("browser", models.CharField(blank=True, default="", max_length=200)),
                ("ended_at", models.DateTimeField(null=True)),
                ("ended_by", models.UUIDField(null=True)),
                (
                    "person",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="tenancy.browsersession",
                    ),
                ),
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
            },
        ),
        migrations.AddIndex(
            model_name="browsersession",
            index=models.Index(fields=["last_seen_at"], name="browser_session_idle"),
        ),
        migrations.AddIndex(
            model_name="tenantsession",
            index=models.Index(fields=["session"], name="tenant_session_of"),
        ),
        migrations.AddIndex(
            model_name="tenantsession",
            index=models.Index(fields=["tenant", "person"], name="tenant_session_by_person"),
        ),
        migrations.AddConstraint(
            model_name="tenantsession",
            constraint=models.UniqueConstraint(
                fields=("tenant", "id"), name="tenancy_tenantsession_of_tenant"
            ),
        ),
        migrations.AddConstraint(
            model_name="tenantsession",
            constraint=models.UniqueConstraint(fields=("tenant", "session"), name="tenant_session_once"),
        ),
        row_security("tenancy_tenantsession"),
        grant_table_rights("tenancy_tenantsession", "SELECT, INSERT"),
        migrations.RunSQL(GOES, NO_GOES),
        migrations.RunSQL(BEGINS, NO_BEGINS),
        migrations.RunSQL(ENDED, NO_ENDED),
        migrations.RunSQL(OLD_TABLES, migrations.RunSQL.noop),
    ]
