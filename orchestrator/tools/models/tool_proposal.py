"""Changes that guard less, and wait for a second person (R-TOOL-4, R-BUDGET-9)."""

from django.db import models
from django.db.models import F, Q

from tenancy.models import TenantOwned

KINDS = [
    "change", "admit", "declare", "web", "databases", "mail", "models", "places", "ceilings",
    "boundary", "sign_in",
]  # fmt: skip


class ToolProposal(TenantOwned):
    """A change, an admission or a declaration of a tool, a wider way out, a ceiling that is
    raised, a boundary that allows more, or rules of signing in that ask for less.

    It guards less than what stands, and is settled once: by a person or, where it is about something that is
    another by now, by the house.

    `kind` says which; `tag` is the tool, or the version of the list, that was looked at, empty where there
    was none; `body` what is asked for; `weaker` where it is weaker, a sentence each.
    """

    kind = models.CharField(max_length=12)
    tool = models.CharField(max_length=64)
    tag = models.CharField(max_length=40, blank=True, default="")
    body = models.JSONField()
    weaker = models.JSONField()
    reason = models.CharField(max_length=500)
    by = models.UUIDField()
    owner = models.UUIDField()
    at = models.DateTimeField()
    status = models.CharField(max_length=10, default="open")
    settled_by = models.UUIDField(null=True)
    settled_owner = models.UUIDField(null=True)
    settled_at = models.DateTimeField(null=True)
    settled_reason = models.CharField(max_length=500, blank=True, default="")

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="toolproposal_tenant_id"),
            models.UniqueConstraint(
                fields=["tenant", "tool"], condition=Q(status="open"), name="toolproposal_one_open"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=KINDS),
                name="toolproposal_kind_known",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["open", "agreed", "refused", "withdrawn", "outdated"]),
                name="toolproposal_status_known",
            ),
            models.CheckConstraint(
                condition=~Q(status="agreed")
                | (
                    Q(settled_by__isnull=False, settled_owner__isnull=False)
                    & ~Q(settled_by=F("by"))
                    & ~Q(settled_owner=F("owner"))
                ),
                name="toolproposal_second_person",
            ),
        ]
