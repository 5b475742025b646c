"""Queries for tools: current state, earlier versions and users. All run in the tenant's context."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
from django.db import connection
from django.db.models import Q

from orchestrator.core.common.name_patterns import is_listed
from orchestrator.core.common.run_status import TERMINAL_STATUSES
from orchestrator.core.domain.boundary import Boundary
from orchestrator.core.domain.tool_spec import Risk, ToolSpec
from orchestrator.publishing.models import BoundaryVersion, RegistryVersion, ToolVersion, WorkflowVersion
from orchestrator.runs.models.emergency_stop import EmergencyStop
from orchestrator.runs.models.run import Run
from tenancy.core.errors import NotFound

DISABLED = "Disabled: "
"""How the reason of a stop begins that a tool's own switch has set."""
USE_DAYS = 7
# Run ids contain their time, so both halves are range scans of an index.
_USE = """
SELECT tool, count(*) AS calls, 0 AS failures FROM orchestrator_intent
 WHERE tenant_id = %(tenant)s AND tool <> '' AND run_id >= %(since)s GROUP BY tool
UNION ALL
SELECT convert_from(body, 'UTF8')::jsonb ->> 'tool', 0, count(*) FROM traces_event
 WHERE tenant_id = %(tenant)s AND kind = 'failure_committed' AND run_id >= %(since)s GROUP BY 1"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolNow:
    """A tool in its current state: newest version, whether the registry holds it, and its stops."""

    spec: ToolSpec
    digest: str
    enabled: bool
    published_at: datetime
    published_by: UUID | None
    stops: tuple[EmergencyStop, ...] = ()

    @property
    def tag(self) -> str:
        """Entity tag, without quotes, that changes whenever the tool changes."""
        return f"{self.digest[:32]}.{'on' if self.enabled else 'off'}"

    @property
    def emergency_stop(self) -> EmergencyStop | None:
        """The stop that closes the tool now."""
        return self._in_force("tool")

    @property
    def drift_mark(self) -> EmergencyStop | None:
        """The drift mark of a tool whose answers no longer match its declared schema."""
        return self._in_force("drift")

    def _in_force(self, scope: str) -> EmergencyStop | None:
        return next((stop for stop in self.stops if stop.scope == scope), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of a tool."""

    spec: ToolSpec
    published_at: datetime
    published_by: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A published workflow that names a tool, with its boundary and its risk ceiling for this tool.

    The ceiling is None if the boundary does not allow the tool.
    """

    slug: str
    title: str
    boundary: str
    ceiling: Risk | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Calls and failures of a tool in the last seven days."""

    calls: int = 0
    failures: int = 0

    @property
    def share(self) -> int:
        """Failures per hundred calls, rounded."""
        return round(100 * self.failures / self.calls) if self.calls else 0


def registry_tools() -> Mapping[str, str]:
    """Return the digests of the active tools by name."""
    registry = RegistryVersion.objects.order_by("-version").first()
    tools: dict[str, str] = registry.tools if registry is not None else {}
    return tools


def tools_now(tenant_id: UUID) -> list[ToolNow]:
    """List every tool that was ever published, by name, disabled tools included."""
    active = registry_tools()
    rows = ToolVersion.objects.order_by("slug", "-version").distinct("slug")
    stops = _list_tool_stops(tenant_id)
    return [_build_current_tool(row, active, stops.get(row.slug, ())) for row in rows]


def tool_now(tenant_id: UUID, name: str) -> ToolNow:
    """Return one tool.

    Raises: NotFound, also for a tool of another tenant.
    """
    row = ToolVersion.objects.filter(slug=name).order_by("-version").first()
    if row is None:
        raise NotFound
    return _build_current_tool(row, registry_tools(), _list_tool_stops(tenant_id).get(name, ()))


def versions_of(name: str) -> list[Version]:
    """List every version of a tool, newest first."""
    rows = ToolVersion.objects.filter(slug=name).order_by("-version")
    return [
        Version(spec=_parse_tool_spec(row), published_at=row.published_at, published_by=row.published_by)
        for row in rows
    ]


def used_by() -> dict[str, list[User]]:
    """Return, for each tool of the registry, the published workflows that may call it."""
    boundaries = {
        row.slug: Boundary.model_validate_json(bytes(row.body))
        for row in BoundaryVersion.objects.filter(retired_at=None)
        .order_by("slug", "-version")
        .distinct("slug")
    }
    found: dict[str, list[User]] = {}
    names = list(ToolVersion.objects.order_by("slug").values_list("slug", flat=True).distinct())
    for row in WorkflowVersion.objects.filter(retired_at=None).order_by("slug", "-version").distinct("slug"):
        document = orjson.loads(bytes(row.body))
        boundary = boundaries.get(document["boundary"])
        for name in names:
            if is_listed(tuple(document.get("tools", ())), name):
                user = User(
                    slug=row.slug, title=row.title, boundary=document["boundary"],
                    ceiling=_get_risk_ceiling(boundary, name),
                )  # fmt: skip
                found.setdefault(name, []).append(user)
    return found


def live_runs_of(workflows: list[str]) -> int:
    """Count the runs of these workflows that have not ended."""
    over = [status.value for status in TERMINAL_STATUSES]
    return Run.objects.filter(workflow__in=workflows).exclude(status__in=over).count()


def count_tool_use(tenant_id: UUID, now: datetime) -> dict[str, Use]:
    """Return the calls and failures of each tool in the runs of the last seven days.

    Calls are counted as intents; failures are counted as recorded in the traces.
    """
    since = UUID(int=int((now - timedelta(days=USE_DAYS)).timestamp() * 1000) << 80)
    found: dict[str, Use] = {}
    with connection.cursor() as cursor:
        cursor.execute(_USE, {"tenant": tenant_id, "since": since})
        for tool, calls, failures in cursor.fetchall():
            known = found.get(tool or "", Use())
            found[tool or ""] = Use(calls=known.calls + calls, failures=known.failures + failures)
    return found


def _build_current_tool(
    row: ToolVersion, active: Mapping[str, str], stops: tuple[EmergencyStop, ...]
) -> ToolNow:
    return ToolNow(
        spec=_parse_tool_spec(row),
        digest=row.digest,
        enabled=row.slug in active,
        published_at=row.published_at,
        published_by=row.published_by,
        stops=stops,
    )


def _parse_tool_spec(row: ToolVersion) -> ToolSpec:
    return ToolSpec.model_validate_json(bytes(row.body))


def _list_tool_stops(tenant_id: UUID) -> dict[str, tuple[EmergencyStop, ...]]:
    found: dict[str, tuple[EmergencyStop, ...]] = {}
    own = Q(tenant_id=tenant_id, scope__in=("tool", "risk", "drift"), lifted_at=None)
    for stop in EmergencyStop.objects.filter(own).order_by("at", "id"):
        found[stop.target] = (*found.get(stop.target, ()), stop)
    return found


def _get_risk_ceiling(boundary: Boundary | None, name: str) -> Risk | None:
    grant = boundary.grant_for(name) if boundary is not None else None
    if boundary is None or grant is None:
        return None
    return min((grant.risk_ceiling, boundary.risk_ceiling), key=lambda risk: risk.rank)


def lowest_risk(name: str) -> Risk | None:
    """Return the lowest risk class of any version of a tool, since a run may be pinned to any version."""
    found: list[dict[str, Any]] = [
        orjson.loads(bytes(body))
        for body in ToolVersion.objects.filter(slug=name).values_list("body", flat=True)
    ]
    return min((Risk(body["risk"]) for body in found), key=lambda risk: risk.rank, default=None)


def describe_change_impact(now: ToolNow, after: ToolSpec) -> list[str]:
    """Describe in sentences what a change of a tool would do (R-UI-5).

    The sentences cover gates, workflows that could no longer call the tool, and runs under way.
    """
    users = used_by().get(after.name, [])
    live = live_runs_of([user.slug for user in users])
    lines: list[str] = []
    if now.spec.needs_gate != after.needs_gate:
        lines.append(
            "Every call of a new run asks a person." if after.needs_gate else "Calls of new runs ask nobody."
        )
    shut = [user.slug for user in users if user.ceiling is None or after.risk.rank > user.ceiling.rank]
    if shut and after.risk is not now.spec.risk:
        lines.append(f"The boundary of these workflows allows no {after.risk.value} call: {', '.join(shut)}.")
    if after.risk.rank > now.spec.risk.rank:
        lines.append(
            f"The next call in each of {live} runs under way asks a person, or is denied by its boundary."
        )
    elif live and after != now.spec:
        lines.append(f"{live} runs under way keep the version they were admitted with.")
    return lines or ["Nothing changes for any run under way."]
