"""Whoever saw a person's first-password link in one tenant is related to them in every tenant (R-APPR-5)."""

from django.db import migrations
from tenancy.db.integrity_guards import create_cross_tenant_policy, create_definer_function

# Ties of the tenant itself are read as such; those of others are what it cannot see.
HOLDERS = """
WITH RECURSIVE held(id) AS (
  SELECT t.by_id FROM tenancy_persontie t WHERE t.kind = 'link_seen' AND t.person_id = $1 AND t.tenant_id <> $2
  UNION
  SELECT t.by_id FROM tenancy_persontie t JOIN held h ON t.person_id = h.id
   WHERE t.kind = 'link_seen' AND t.tenant_id <> $2
)
SELECT id FROM held WHERE id <> $1
"""


class Migration(migrations.Migration):
    """One function of the closed list."""

    dependencies = [("tenancy", "0017_failed_sign_ins")]
    operations = [
        create_cross_tenant_policy("tenancy_persontie", "SELECT"),
        create_definer_function("people_with_link", "person uuid, tenant uuid", "SETOF uuid", HOLDERS),
    ]
