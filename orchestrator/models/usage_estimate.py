"""What is known of a workflow's runs before the next one begins (R-BUDGET-4)."""

from typing import ClassVar

from django.db import models

from tenancy.models import TenantOwned


class Expectation(TenantOwned):
    """The newest runs of one kind that came to a result, and the bounds they give. One row for each subject,
    whose digest stands in `graph`: how the rest went is a matter of the graph, and of the tools, the models
    and the prices it went with."""

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
