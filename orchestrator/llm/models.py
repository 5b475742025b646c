"""The queue in front of a model with limited concurrency, and the runs that call it (R-TOOL-22)."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from tenancy.models import TenantOwned


class ModelTurn(TenantOwned):
    """One run's place in front of a model; its id is the run's, which calls one model at a time.

    `place` is the model's circuit, behind which the run is `away`, or its queue. In the queue a run is
    `queued` until it is `called`, which holds for a moment, and then `calling`. A call counts for as long
    as its run's lease with this `fence` lives, so a dead worker's calls lapse by themselves; `until` bounds
    both. `most` is the number of concurrent calls that the run's profile allows for its model.
    """

    place = models.UUIDField()
    stage = models.CharField(max_length=8)
    fence = models.BigIntegerField()
    most = models.IntegerField()
    since = models.DateTimeField()
    until = models.DateTimeField(null=True)

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.CheckConstraint(
                condition=Q(stage__in=["away", "queued"], until__isnull=True)
                | Q(stage__in=["called", "calling"], until__gt=F("since")),
                name="modelturn_stage_whole",
            ),
            models.CheckConstraint(condition=Q(most__gte=1), name="modelturn_most_one"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["place", "stage", "since"], name="modelturn_in_front"),
        ]


class ModelServed(TenantOwned):
    """The last time that a tenant was called up in a queue: the tenant served longest ago comes first."""

    place = models.UUIDField()
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(fields=["tenant", "place"], name="modelserved_once"),
        ]
