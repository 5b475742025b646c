"""The runs that ask people something, as the inbox calls them: the answer to approvals' question
(approvals/ports.py)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from approvals.ports import CallShape, RunWords
from orchestrator.core.domain.manifest import Pins
from orchestrator.models import ManifestRow, PinSet, Run, WorkflowVersion


class AskingRuns:
    """The runs of the current tenant."""

    def shape(self, run_id: UUID, tool: str) -> CallShape | None:
        """A tool's call as the run is pinned to it."""
        pinned = ManifestRow.objects.filter(id=run_id).values_list("pins_digest", flat=True).first()
        body = PinSet.objects.filter(digest=pinned).values_list("body", flat=True).first()
        spec = Pins.model_validate_json(bytes(body)).by_name.get(tool) if body is not None else None
        if spec is None:
            return None
        return CallShape(input_schema=spec.input_schema, amount=spec.amount, sensitive=spec.sensitive)

    def words(self, run_ids: Collection[UUID]) -> Mapping[UUID, RunWords]:
        """What these runs are called: the workflow, and the beginning of the goal."""
        rows = Run.objects.filter(id__in=run_ids).values_list("id", "workflow", "title", "status")
        return {run: RunWords(workflow, title, status) for run, workflow, title, status in rows}

    def of_workflow(self, slug: str) -> Any:
        """The ids of a workflow's runs."""
        return Run.objects.filter(workflow=slug).values("id")

    def workflows(self) -> Sequence[str]:
        """The workflows that were ever published here."""
        slugs = WorkflowVersion.objects.order_by("slug").values_list("slug", flat=True)
        return list(slugs.distinct())
