"""Views of the run list that people keep under a name (R-UI-2)."""

from django.db import models
from django.db.models.functions import Lower

from tenancy.models import TenantOwned


class SavedView(TenantOwned):
    """Filters of the run list under a name of its keeper's own. `query` is what the list's address says of
    them; `first` is the one view that the bare address opens. Renamed and removed freely: it decides nothing.
    """

    principal = models.UUIDField()
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=2_000)
    first = models.BooleanField(default=False)
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="savedview_tenant_id"),
            models.UniqueConstraint("tenant", "principal", Lower("name"), name="savedview_name_once"),
            models.UniqueConstraint(
                fields=["tenant", "principal"], condition=models.Q(first=True), name="savedview_one_first"
            ),
        ]
