"""A membership names its queues, or `*` for every one; none is none (R-APPR-23). Where none stood, every queue
was meant, and is written."""

from django.db import migrations, models

# The owner's own policies are those of any tenant, so what was there is written without them for a moment.
FILL = """
ALTER TABLE tenancy_membership NO FORCE ROW LEVEL SECURITY;
UPDATE tenancy_membership SET queues = '{*}' WHERE cardinality(queues) = 0;
UPDATE tenancy_membership SET queues = '{*}' WHERE '*' = ANY (queues);
ALTER TABLE tenancy_membership FORCE ROW LEVEL SECURITY;
"""


class Migration(migrations.Migration):
    """The rows, and that `*` stands alone."""

    dependencies = [("tenancy", "0011_narrow_keys")]
    operations = [
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.AddConstraint(
            model_name="membership",
            constraint=models.CheckConstraint(
                condition=~models.Q(queues__contains=["*"]) | models.Q(queues=["*"]),
                name="membership_every_queue_alone",
            ),
        ),
    ]
