"""Requests to people, their decisions, and the use of grants (R-APPR-2 to 4)."""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from approvals.core.assignment import AssignmentAction
from approvals.core.lifecycle import DecisionKind, RequestStatus
from approvals.core.undo import Fate
from tenancy.models import TenantOwned


class Request(TenantOwned):
    """A question to people. Everything but its status is fixed when it is made.

    `packet` is the content that was shown; `sealed` is set if it holds sealed values. `retriers` are the
    principals that retried the run, or one that it continues.
    """

    run_id = models.UUIDField()
    call_id = models.CharField(max_length=32)
    kind = models.CharField(max_length=16)
    status = models.CharField(
        max_length=10,
        choices=[(s.value, s.value) for s in RequestStatus],
        default=RequestStatus.PENDING.value,
    )
    packet = models.BinaryField()
    packet_digest = models.CharField(max_length=64)
    action_digest = models.CharField(max_length=64, blank=True)
    tool = models.CharField(max_length=64, blank=True)
    queue = models.CharField(max_length=64)
    quorum = models.PositiveSmallIntegerField(default=1)
    risk = models.CharField(max_length=16)
    amount = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    has_amount = models.BooleanField(default=False)
    sealed = models.BooleanField(default=False, db_default=False)
    answer_schema = models.JSONField(null=True)
    submitter = models.UUIDField()
    submitter_owner = models.UUIDField()
    retriers = ArrayField(models.UUIDField(), default=list)
    retrier_owners = ArrayField(models.UUIDField(), default=list)
    grant_seconds = models.PositiveIntegerField()
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=16, blank=True)
    granted_action = models.CharField(max_length=64, blank=True)
    ended_because = models.CharField(max_length=200, blank=True)
    kept: "Deferral | None" = None
    """No column: the yes that was kept back when this request was decided just now."""

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(
                fields=["tenant", "run_id", "call_id"],
                condition=Q(status="pending"),
                name="request_one_open_per_call",
            ),
            models.CheckConstraint(
                condition=Q(status="pending", settled_at=None)
                | (~Q(status="pending") & Q(settled_at__isnull=False)),
                name="request_settled_has_a_time",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant", "status", "created_at"], name="request_inbox"),
            models.Index(fields=["tenant", "run_id"], name="request_by_run"),
            models.Index(
                fields=["tenant", "expires_at", "id"], condition=Q(status="pending"), name="request_waiting"
            ),
            models.Index(
                fields=["tenant", "-settled_at", "-id"],
                condition=~Q(status="pending"),
                name="request_settled",
            ),
            models.Index(fields=["tenant", "tool", "-settled_at"], name="request_by_tool"),
        ]


class Decision(TenantOwned):
    """One person's decision on a request. Append-only; `digest` covers every other column.

    `quorum` is how many people must agree to the subject of this decision: the packet, or these
    `arguments`. None for a decision that agrees to nothing, and for rows older than the column. `previous`
    is the digest of the previous decision on the same request, or the packet's for the first.
    """

    request = models.ForeignKey(
        Request, on_delete=models.PROTECT, related_name="decisions", db_constraint=False
    )
    principal = models.UUIDField()
    owner = models.UUIDField()
    role = models.CharField(max_length=64)
    kind = models.CharField(max_length=16, choices=[(k.value, k.value) for k in DecisionKind])
    reason = models.TextField(blank=True)
    arguments = models.BinaryField(null=True)
    answer = models.BinaryField(null=True)
    quorum = models.PositiveSmallIntegerField(null=True)
    packet_digest = models.CharField(max_length=64)
    previous = models.CharField(max_length=64)
    at = models.DateTimeField()
    digest = models.CharField(max_length=64)

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(fields=["tenant", "request", "owner"], name="decision_once_a_person"),
            models.UniqueConstraint(fields=["tenant", "request", "previous"], name="decision_one_line"),
        ]


class GrantUse(TenantOwned):
    """The use of a grant by an effect. Append-only; its id is the request's, so there is at most one."""

    effect_id = models.CharField(max_length=32)
    action_digest = models.CharField(max_length=64)
    at = models.DateTimeField()


class Handling(TenantOwned):
    """An action on a request other than deciding it. Append-only; the newest of its sort applies."""

    request = models.ForeignKey(
        Request, on_delete=models.PROTECT, related_name="handlings", db_constraint=False
    )
    principal = models.UUIDField()
    owner = models.UUIDField()
    kind = models.CharField(max_length=8, choices=[(k.value, k.value) for k in AssignmentAction])
    to = models.UUIDField(null=True)
    until = models.DateTimeField(null=True)
    text = models.TextField(blank=True)
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.CheckConstraint(
                condition=Q(kind__in=("claim", "assign"), to__isnull=False)
                | (~Q(kind__in=("claim", "assign")) & Q(to=None)),
                name="handling_to_somebody",
            ),
            models.CheckConstraint(
                condition=Q(kind="snooze", until__isnull=False) | (~Q(kind="snooze") & Q(until=None)),
                name="handling_until_some_time",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant", "request", "at"], name="handling_of_request"),
            models.Index(fields=["tenant", "at"], name="handling_lately"),
        ]


class UndoWindow(TenantOwned):
    """A version of the undo window in seconds, 0 for none; the newest applies. Append-only."""

    version = models.PositiveIntegerField()
    seconds = models.PositiveSmallIntegerField()
    reason = models.CharField(max_length=500)
    by = models.UUIDField()
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(fields=["tenant", "version"], name="undowindow_once"),
            models.CheckConstraint(condition=Q(seconds__lte=10), name="undowindow_at_most_ten"),
        ]


class Deferral(TenantOwned):
    """An approval that takes effect at `effective_at` unless it is undone before.

    At most one per request is pending. All columns but those of its end are fixed when it is made; those of
    its end are fixed once set.
    """

    request = models.ForeignKey(
        Request, on_delete=models.PROTECT, related_name="deferrals", db_constraint=False
    )
    run_id = models.UUIDField()
    principal = models.UUIDField()
    owner = models.UUIDField()
    kind = models.CharField(max_length=16)
    reason = models.TextField(blank=True)
    arguments = models.BinaryField(null=True)
    packet_digest = models.CharField(max_length=64)
    at = models.DateTimeField()
    effective_at = models.DateTimeField()
    fate = models.CharField(
        max_length=8, choices=[(f.value, f.value) for f in Fate], default=Fate.STANDS.value
    )
    ended_at = models.DateTimeField(null=True)
    ended_by = models.UUIDField(null=True)
    ended_because = models.CharField(max_length=300, blank=True)

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(
                fields=["tenant", "request"], condition=Q(fate="stands"), name="deferral_one_stands"
            ),
            models.CheckConstraint(
                condition=Q(fate="stands", ended_at=None) | (~Q(fate="stands") & Q(ended_at__isnull=False)),
                name="deferral_ended_has_a_time",
            ),
            models.CheckConstraint(
                condition=Q(fate__in=[fate.value for fate in Fate]), name="deferral_fate_is_known"
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant", "request", "at"], name="deferral_of_request"),
            models.Index(fields=["tenant", "at"], name="deferral_lately"),
            models.Index(fields=["tenant", "ended_at"], name="deferral_ended_lately"),
            models.Index(fields=["effective_at"], condition=Q(fate="stands"), name="deferral_due"),
        ]
