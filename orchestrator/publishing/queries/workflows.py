"""Reads of workflows for doors and pages. All inside the tenant's context."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from django.db import connection

from orchestrator.core.domain.boundary import Boundary
from orchestrator.core.domain.graph import GraphSpec
from orchestrator.policies.queries.boundaries import newest_boundary
from orchestrator.publishing.models import WorkflowVersion
from orchestrator.runs.queries.run_list import CAP, LIVE, Count, plan_anew
from tenancy.core.errors import NotFound

# A count up to the cap for each, from an index, and not one walk over all runs.
_COUNTED = f"""
WITH live AS (
  SELECT workflow, count(*) AS number FROM orchestrator_run WHERE status = ANY(%(live)s) GROUP BY workflow)
SELECT w.slug,
       (SELECT count(*) FROM (
         SELECT 1 FROM orchestrator_run r WHERE r.workflow = w.slug LIMIT {CAP + 1}) AS those),
       coalesce((SELECT number FROM live WHERE live.workflow = w.slug), 0)
  FROM (SELECT DISTINCT slug FROM orchestrator_workflowversion) AS w"""  # noqa: S608 - a number of ours


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedWorkflow:
    """A workflow in the list: the version in force (or, where all are retired, the newest), its runs."""

    row: WorkflowVersion
    runs: Count
    live: Count

    @property
    def state(self) -> str:
        """`published` or `retired`."""
        return "retired" if self.row.retired_at is not None else "published"


def list_all_workflows() -> list[ListedWorkflow]:
    """Every workflow by its slug, retired ones too."""
    published = WorkflowVersion.objects.filter(retired_at=None).order_by("slug", "-version").distinct("slug")
    newest = {row.slug: row for row in WorkflowVersion.objects.order_by("slug", "-version").distinct("slug")}
    rows = newest | {row.slug: row for row in published}
    counted = _count_workflow_runs()
    return [
        ListedWorkflow(row=rows[slug], runs=counted[slug][0], live=counted[slug][1]) for slug in sorted(rows)
    ]


def list_workflow_slugs() -> list[str]:
    """The names of all workflows, retired ones too: `list_all_workflows` counts runs for its own."""
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
    """The version of a boundary that is in force."""
    row = newest_boundary(slug)
    return Boundary.model_validate_json(bytes(row.body)) if row is not None else None


def _count_workflow_runs() -> Mapping[str, tuple[Count, Count]]:
    """By workflow: its runs and those of them that are under way, each up to the cap of a list."""
    plan_anew()
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED, {"live": list(LIVE)})
        return {slug: (Count(runs), Count(live)) for slug, runs, live in cursor.fetchall()}
