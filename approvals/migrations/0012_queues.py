"""A request is asked in a queue of its tenant (R-SEC-11, R-APPR-5)."""

from django.db import migrations
from tenancy.db.queue_guards import keep_named, queue_key


class Migration(migrations.Migration):
    """The queues that requests name already, and the reference."""

    dependencies = [("approvals", "0011_sealed"), ("tenancy", "0030_queues")]
    operations = [
        keep_named({"approvals_request": "SELECT tenant_id, queue FROM approvals_request"}),
        queue_key("approvals_request"),
    ]
