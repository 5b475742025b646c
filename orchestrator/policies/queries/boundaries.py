"""Reads of boundaries for the API and pages. All inside the tenant's context (R-GRAPH-11)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from budgets.core.limit_profiles import ROWS
from orchestrator.core.domain.boundary import Boundary
from orchestrator.publishing.models import BoundaryVersion, WorkflowVersion
from tenancy.core.errors import NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryNow:
    """A boundary's newest version, and the published workflows that name it."""

    row: BoundaryVersion
    boundary: Boundary
    workflows: tuple[str, ...]


def boundaries_now() -> list[BoundaryNow]:
    """Every boundary by its slug, in the version that is in force; not those that are retired wholly."""
    rows = BoundaryVersion.objects.filter(retired_at=None).order_by("slug", "-version").distinct("slug")
    return _with_workflow_names(rows)


def boundaries_retired() -> list[BoundaryNow]:
    """The boundaries of which every version is retired, by their slug, in the newest version."""
    rows = BoundaryVersion.objects.order_by("slug", "-version").distinct("slug")
    stands = set(BoundaryVersion.objects.filter(retired_at=None).values_list("slug", flat=True))
    return _with_workflow_names(row for row in rows if row.slug not in stands)


def _with_workflow_names(rows: Iterable[BoundaryVersion]) -> list[BoundaryNow]:
    named = _workflows_by_boundary()
    return [
        BoundaryNow(row=row, boundary=boundary_in(row), workflows=named.get(row.slug, ())) for row in rows
    ]


def boundary_versions(slug: str) -> list[BoundaryVersion]:
    """Every version of a boundary, retired ones too, newest first. Raises NotFound where there is none."""
    found = list(BoundaryVersion.objects.filter(slug=slug).order_by("-version"))
    if not found:
        raise NotFound
    return found


def newest_boundary(slug: str) -> BoundaryVersion | None:
    """The version of a boundary that new runs get: the newest that is not retired."""
    return BoundaryVersion.objects.filter(slug=slug, retired_at=None).order_by("-version").first()


def was_published(boundary: Boundary) -> bool:
    """True if some version of the boundary, whatever its number, is this one; retired ones count."""
    rows = BoundaryVersion.objects.filter(slug=boundary.slug)
    return any(boundary_in(row).evolve(version=0) == boundary.evolve(version=0) for row in rows)


def in_force_of(versions: Sequence[BoundaryVersion]) -> BoundaryVersion | None:
    """Of a boundary's versions, newest first, the one that new runs get."""
    return next((one for one in versions if one.retired_at is None), None)


def version_left(slug: str) -> BoundaryVersion | None:
    """The version that new runs get once the one in force is retired."""
    stands = BoundaryVersion.objects.filter(slug=slug, retired_at=None).order_by("-version")
    return next(iter(stands[1:2]), None)


def retirement_tag(slug: str) -> str:
    """A text that changes with the version of a boundary that is in force, and with the one that is left once
    it is retired."""
    now, left = newest_boundary(slug), version_left(slug)
    return f"{now.version if now else 0} over {left.version if left else 0}"


def boundary_in(row: BoundaryVersion) -> Boundary:
    """A version's boundary."""
    return Boundary.model_validate_json(bytes(row.body))


def boundary_document(row: BoundaryVersion) -> dict[str, Any]:
    """A version as plain values, in the order in which people write it; the version is not part of it."""
    held: dict[str, Any] = boundary_in(row).model_dump(mode="json", exclude={"version"})
    return {**held, "budget": {one.value: None for one in ROWS} | held["budget"]}


def workflows_under(slug: str) -> tuple[str, ...]:
    """The published workflows that name a boundary."""
    return _workflows_by_boundary().get(slug, ())


def _workflows_by_boundary() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for row in WorkflowVersion.objects.filter(retired_at=None).order_by("slug", "-version").distinct("slug"):
        named = str(orjson.loads(bytes(row.body))["boundary"])
        found[named] = (*found.get(named, ()), row.slug)
    return found
