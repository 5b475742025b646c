"""Usage of earlier runs of a workflow, as an estimate for the next one (R-BUDGET-4)."""

from typing import ClassVar

from django.db import models

from tenancy.models import TenantOwned


class Expectation(TenantOwned):
    """The newest runs of one kind that had a result, and the bounds derived from them.

    There is one row for each subject, whose digest is `graph`: the remaining usage depends on the graph,
    the tools, the models and the prices of a run.
    """

    workflow = models.CharField(max_length=64)
    graph = models.CharField(max_length=64)
    lived = models.JSONField()
    expected = models.JSONField()
    learnt_at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            *TenantOwned.Meta.constraints,
            models.UniqueConstraint(fields=["tenant", "graph"], name="expectation_one_a_graph"),
        ]
