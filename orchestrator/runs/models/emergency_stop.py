"""Emergency stops (R-SEC-9)."""

from django.db import models
from django.db.models import Q

from tenancy.db.ids import fresh_id


class EmergencyStop(models.Model):
    """A stop in force until it is lifted. `tenant` None with scope `global` stops everything.

    Scope `risk` stops nothing: it raises the tool `target` to the class `risk` for runs that are pinned to a
    lower one (R-TOOL-4). Scope `policy` names the newest policy by its digest, for runs that are pinned to
    another. Scope `drift` marks the tool `target`, whose answers do not fit its declared form (R-TOOL-14).
    They stand here because every commit reads what is in force from here.

    No tenant table like the others, for a global stop is nobody's own: a tenant reads its own rows and the
    global ones, and writes its own alone; outside any tenant only the global ones are read and written.
    """

    id = models.UUIDField(primary_key=True, default=fresh_id)
    scope = models.CharField(max_length=10)
    tenant_id = models.UUIDField(null=True)
    target = models.CharField(max_length=64, blank=True)
    risk = models.CharField(max_length=16, blank=True, default="")
    reason = models.CharField(max_length=500)
    by = models.UUIDField(null=True)
    at = models.DateTimeField()
    lifted_at = models.DateTimeField(null=True)
    lifted_by = models.UUIDField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(scope__in=["global", "tenant", "workflow", "tool", "risk", "policy", "drift"]),
                name="stop_scope_known",
            ),
            models.CheckConstraint(
                condition=Q(scope="risk") & ~Q(risk="") | ~Q(scope="risk") & Q(risk=""),
                name="stop_risk_of_risk",
            ),
            models.CheckConstraint(
                condition=Q(scope="global", tenant_id__isnull=True) | Q(tenant_id__isnull=False),
                name="stop_of_whom",
            ),
        ]
        indexes = [
            models.Index(
                fields=["scope", "tenant_id"], condition=Q(lifted_at__isnull=True), name="stop_in_force"
            )
        ]
