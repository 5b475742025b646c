"""Nobody of those who had a run or one before it begun again decides on it (R-APPR-5, R-SESS-9)."""

from typing import Final

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

# A change of type and name rather than new columns: rows of settled requests take no update.
MANY: Final = """
ALTER TABLE approvals_request
  ALTER COLUMN {one} TYPE uuid[] USING array_remove(ARRAY[{one}], NULL),
  ALTER COLUMN {one} SET NOT NULL,
  ALTER COLUMN {one} SET DEFAULT '{{}}';
ALTER TABLE approvals_request RENAME COLUMN {one} TO {many};
"""
ONE: Final = """
ALTER TABLE approvals_request RENAME COLUMN {many} TO {one};
ALTER TABLE approvals_request
  ALTER COLUMN {one} DROP DEFAULT,
  ALTER COLUMN {one} DROP NOT NULL,
  ALTER COLUMN {one} TYPE uuid USING {one}[1];
"""
NOT_THEIRS: Final = """
CREATE OR REPLACE FUNCTION approvals_not_the_retriers() RETURNS trigger LANGUAGE plpgsql
  SET search_path = pg_catalog AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM public.approvals_request
       WHERE tenant_id = NEW.tenant_id AND id = NEW.request_id AND kind <> 'clarification'
         AND ({principal} OR {owner})) THEN
    RAISE EXCEPTION 'this decision is not this person''s to make' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
"""
BY_ANY: Final = NOT_THEIRS.format(
    principal="NEW.principal = ANY (retriers)", owner="NEW.owner = ANY (retrier_owners)"
)
BY_ONE: Final = NOT_THEIRS.format(principal="retrier = NEW.principal", owner="retrier_owner = NEW.owner")


def many(one: str, name: str) -> migrations.SeparateDatabaseAndState:
    """The column holds any number."""
    return migrations.SeparateDatabaseAndState(
        [migrations.RunSQL(MANY.format(one=one, many=name), ONE.format(one=one, many=name))],
        [
            migrations.RenameField("request", one, name),
            migrations.AlterField("request", name, ArrayField(models.UUIDField(), default=list)),
        ],
    )


class Migration(migrations.Migration):
    """Two columns of many, and what they mean."""

    dependencies = [("approvals", "0008_retrier")]
    operations = [
        many("retrier", "retriers"),
        many("retrier_owner", "retrier_owners"),
        migrations.RunSQL(BY_ANY, BY_ONE),
    ]
