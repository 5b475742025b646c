"""Reads of workflows for doors and pages. All inside the tenant's context."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from django.db.models import Count, Q

from orchestrator.core.boundary import Boundary
from orchestrator.core.graph import GraphSpec
from orchestrator.core.terminal import TERMINAL_STATUSES
from orchestrator.models import BoundaryVersion, Run, WorkflowVersion
from tenancy.core.errors import NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A workflow in the list: the version in force (or, where all are retired, the newest), its runs."""

    row: WorkflowVersion
    runs: int
    live: int

    @property
    def state(self) -> str:
        """`published` or `retired`."""
        return "retired" if self.row.retired_at is not None else "published"


def workflows() -> list[Listed]:
    """Every workflow by its slug, retired ones too."""
    published = WorkflowVersion.objects.filter(retired_at=None).order_by("slug", "-version").distinct("slug")
    newest = {row.slug: row for row in WorkflowVersion.objects.order_by("slug", "-version").distinct("slug")}
    rows = newest | {row.slug: row for row in published}
    counted = _runs()
    return [Listed(row=rows[slug], **counted.get(slug, {"runs": 0, "live": 0})) for slug in sorted(rows)]


def slugs() -> list[str]:
    """The names of all workflows, retired ones too: `workflows` counts every run for its own."""
    return list(WorkflowVersion.objects.order_by("slug").values_list("slug", flat=True).distinct())


def versions_of(slug: str) -> list[WorkflowVersion]:
    """Every version of a workflow, newest first. Raises NotFound where there is none."""
    found = list(WorkflowVersion.objects.filter(slug=slug).order_by("-version"))
    if not found:
        raise NotFound
    return found


def in_force(versions: Sequence[WorkflowVersion]) -> WorkflowVersion | None:
    """Of versions, newest first, the one that new runs get."""
    return next((version for version in versions if version.retired_at is None), None)


def spec_of(version: WorkflowVersion) -> GraphSpec:
    """A version's document."""
    return GraphSpec.model_validate_json(bytes(version.body))


def document_of(version: WorkflowVersion) -> dict[str, Any]:
    """A version's document as plain values, in the order in which people write it."""
    held: dict[str, Any] = orjson.loads(bytes(version.body))
    return {name: held[name] for name in (*GraphSpec.model_fields, *held) if name in held}


def boundary_of(slug: str) -> Boundary | None:
    """The newest version of a boundary."""
    row = BoundaryVersion.objects.filter(slug=slug).order_by("-version").first()
    return Boundary.model_validate_json(bytes(row.body)) if row is not None else None


def _runs() -> Mapping[str, dict[str, int]]:
    over = [status.value for status in TERMINAL_STATUSES]
    rows = Run.objects.values("workflow").annotate(
        runs=Count("id"), live=Count("id", filter=~Q(status__in=over))
    )
    return {row["workflow"]: {"runs": row["runs"], "live": row["live"]} for row in rows}
