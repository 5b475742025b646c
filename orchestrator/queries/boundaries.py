"""Reads of boundaries for the API and pages. All inside the tenant's context (R-GRAPH-11)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from budgets.core.profiles import ROWS
from orchestrator.core.boundary import Boundary
from orchestrator.models import BoundaryVersion, WorkflowVersion
from tenancy.core.errors import NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryNow:
    """A boundary's newest version, and the published workflows that name it."""

    row: BoundaryVersion
    boundary: Boundary
    workflows: tuple[str, ...]


def boundaries_now() -> list[BoundaryNow]:
    """Every boundary by its slug."""
    rows = BoundaryVersion.objects.order_by("slug", "-version").distinct("slug")
    named = _workflows_by_boundary()
    return [
        BoundaryNow(row=row, boundary=boundary_in(row), workflows=named.get(row.slug, ())) for row in rows
    ]


def boundary_versions(slug: str) -> list[BoundaryVersion]:
    """Every version of a boundary, newest first. Raises NotFound where there is none."""
    found = list(BoundaryVersion.objects.filter(slug=slug).order_by("-version"))
    if not found:
        raise NotFound
    return found


def newest_boundary(slug: str) -> BoundaryVersion | None:
    """The version of a boundary that new runs get."""
    return BoundaryVersion.objects.filter(slug=slug).order_by("-version").first()


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
