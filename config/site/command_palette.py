"""Server-side search of the command palette: runs and requests by id, and the person's own views of runs."""

from __future__ import annotations

import re
from typing import Any, TypedDict
from uuid import UUID

from django.db.models import QuerySet

from approvals.models import Request
from config.site.page_context import resolve_page_url
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.saved_views import views_of
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.web.page_auth import Member

MOST = 5
NEWEST = 500
SHORTEST = 4


class PaletteEntry(TypedDict):
    """One line of the palette."""

    text: str
    detail: str
    url: str


def search_palette(member: Member, text: str) -> list[PaletteEntry]:
    """Find runs and requests of the member's tenant whose id begins or ends with `text`.

    Without text, the result is the member's own views of the runs, which the palette fetches once and then
    searches itself (R-UI-2).
    """
    if not text:
        return _list_saved_views(member)
    digits = re.sub(r"[^0-9a-f]", "", text.lower())
    if (
        Scope.READ not in member.scopes
        or len(digits) < SHORTEST
        or len(digits) != len(text.replace("-", "").strip("… "))
    ):
        return []
    with tenant_transaction(member.tenant.id):
        runs: list[PaletteEntry] = [
            {
                "text": f"Run {run.workflow}",
                "detail": str(run.id),
                "url": f"{resolve_page_url('runs') or '/runs'}/{run.id}",
            }
            for run in _match_ids(Run.objects.order_by("-created_at"), digits)
        ]
        requests: list[PaletteEntry] = [
            {
                "text": f"Approval {one.tool or one.kind}", "detail": str(one.id),
                "url": f"{resolve_page_url('approvals') or '/approvals'}/{one.id}",
            }
            for one in _match_ids(Request.objects.order_by("-created_at"), digits)
        ]  # fmt: skip
    return runs + requests


def _list_saved_views(member: Member) -> list[PaletteEntry]:
    """List the member's views by name; none if the member may not read runs."""
    if Scope.READ not in member.scopes:
        return []
    with tenant_transaction(member.tenant.id):
        return [
            {
                "text": f"View {one.name}",
                "detail": "",
                "url": f"{resolve_page_url('runs') or '/runs'}?{one.query}",
            }
            for one in views_of(member.principal)
        ]


def _match_ids(rows: QuerySet[Any], digits: str) -> list[Any]:
    """Find ids by a range for a prefix; for a suffix, search the newest only, since no index helps there."""
    low, high = UUID(digits.ljust(32, "0")[:32]), UUID(digits.ljust(32, "f")[:32])
    begins = list(rows.filter(id__gte=low, id__lte=high)[:MOST])
    ends = [row for row in rows[:NEWEST] if row.id.hex.endswith(digits)] if not begins else []
    return (begins + ends)[:MOST]
