"""What runs put before people without waiting for them, and what people say of it (R-TOOL-19)."""

from django.db import models

from tenancy.models import TenantOwned


class ReviewItem(TenantOwned):
    """What a run asks people to look at, once a key, with the facts it rests on. Append-only.

    `evidence` is a list of {fact, version, digest, trust}; `sha256` is of the whole item.
    """

    run_id = models.UUIDField()
    key = models.CharField(max_length=64)
    queue = models.CharField(max_length=64)
    severity = models.CharField(max_length=8)
    subject = models.CharField(max_length=200)
    reason = models.CharField(max_length=2_000)
    evidence = models.JSONField()
    sha256 = models.CharField(max_length=64)
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="reviewitem_tenant_id"),
            models.UniqueConstraint(fields=["tenant", "run_id", "key"], name="reviewitem_once"),
            models.CheckConstraint(
                condition=models.Q(severity__in=["low", "medium", "high", "critical"]),
                name="reviewitem_severity_known",
            ),
        ]


class ReviewWord(TenantOwned):
    """What somebody did with an item: took it, gave it back, or answered it; the newest counts. Append-only.

    An answer is a finding in one word and what there is to say about it. It is no approval: no call is
    allowed by it.
    """

    item = models.ForeignKey(ReviewItem, on_delete=models.PROTECT, related_name="+", db_constraint=False)
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=8)
    finding = models.CharField(max_length=10, blank=True)
    note = models.CharField(max_length=2_000, blank=True)
    by = models.UUIDField()
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="reviewword_tenant_id"),
            models.UniqueConstraint(fields=["tenant", "item", "number"], name="reviewword_once"),
            models.UniqueConstraint(
                fields=["tenant", "item"],
                condition=models.Q(kind="answered"),
                name="reviewword_answered_once",
            ),
            models.CheckConstraint(
                condition=(
                    models.Q(kind__in=["taken", "released"], finding="")
                    | models.Q(kind="answered", finding__in=["confirmed", "objected", "undecided"])
                ),
                name="reviewword_known",
            ),
        ]
