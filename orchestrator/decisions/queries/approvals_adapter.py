"""Data about runs with open requests, as the inbox shows it; implements approvals/ports.py."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from approvals.ports import CallShape, RunWords
from orchestrator.core.domain.manifest import Pins
from orchestrator.publishing.models import PinSet, WorkflowVersion
from orchestrator.runs.models.run import ManifestRow, Run


class AskingRuns:
    """The runs of the current tenant."""

    def shape(self, run_id: UUID, tool: str) -> CallShape | None:
        """Return the shape of a tool's call, by the version that the run is pinned to; None without one."""
        pinned = ManifestRow.objects.filter(id=run_id).values_list("pins_digest", flat=True).first()
        body = PinSet.objects.filter(digest=pinned).values_list("body", flat=True).first()
        spec = Pins.model_validate_json(bytes(body)).by_name.get(tool) if body is not None else None
        if spec is None:
            return None
        return CallShape(input_schema=spec.input_schema, amount=spec.amount, sensitive=spec.sensitive)

    def words(self, run_ids: Collection[UUID]) -> Mapping[UUID, RunWords]:
        """Return each run's workflow, title (the beginning of the goal) and status."""
        rows = Run.objects.filter(id__in=run_ids).values_list("id", "workflow", "title", "status")
        return {run: RunWords(workflow, title, status) for run, workflow, title, status in rows}

    def of_workflow(self, slug: str) -> Any:
        """Return the ids of a workflow's runs."""
        return Run.objects.filter(workflow=slug).values("id")

    def workflows(self) -> Sequence[str]:
        """Return the workflows that were ever published by this tenant."""
        slugs = WorkflowVersion.objects.order_by("slug").values_list("slug", flat=True)
        return list(slugs.distinct())
