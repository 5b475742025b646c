"""Items that runs submit for review without waiting, and the reviewers' actions on them (R-TOOL-19)."""

from django.db import models

from tenancy.models import TenantOwned


class ReviewItem(TenantOwned):
    """An item that a run submits for review, once per key, with the facts it rests on.

    A row never changes, except that the database sets `answered_at` when the item is answered, so that open
    items are found without their actions. `evidence` is a list of {fact, version, digest, trust}; `sha256`
    is of the whole item; `rank` is its severity, from 0.
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
    answered_at = models.DateTimeField(null=True)
    rank = models.GeneratedField(
        expression=models.Case(
            models.When(severity="medium", then=models.Value(1)),
            models.When(severity="high", then=models.Value(2)),
            models.When(severity="critical", then=models.Value(3)),
            default=models.Value(0),
        ),
        output_field=models.SmallIntegerField(),
        db_persist=True,
    )

    class Meta(TenantOwned.Meta):
        indexes = [
            models.Index(
                fields=["tenant", "-rank", "at", "id"],
                condition=models.Q(answered_at=None),
                name="review_open",
            ),
            models.Index(
                fields=["tenant", "-answered_at", "-id"],
                condition=models.Q(answered_at__isnull=False),
                name="review_answered",
            ),
            models.Index(fields=["tenant", "-at", "-id"], name="review_newest"),
            models.Index(fields=["tenant", "queue", "-at", "-id"], name="review_of_queue"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="reviewitem_tenant_id"),
            models.UniqueConstraint(fields=["tenant", "run_id", "key"], name="reviewitem_once"),
            models.CheckConstraint(
                condition=models.Q(severity__in=["low", "medium", "high", "critical"]),
                name="reviewitem_severity_known",
            ),
        ]


class ReviewWord(TenantOwned):
    """One action on an item: taken, released or answered; the newest counts. Append-only.

    An answer consists of a finding and a note. It is not an approval: it allows no call.
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
