"""GET /: requests that need the reader, and values out of bounds (R-UI-1)."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from approvals.core.policy import Decider
from approvals.queries.people import decider_of
from approvals.views.live_inbox import parse_followed_view, reader_of
from budgets.models import DriftFlag
from budgets.queries.alerts import standing_alerts
from budgets.queries.drifts import standing_drifts
from orchestrator import bundled_content
from orchestrator.bundled_content import Starter
from orchestrator.console.queries.change_feed import has_changed_since
from orchestrator.console.queries.dashboard import build_overview as read
from orchestrator.publishing.queries.example_goals import list_offered_goals
from orchestrator.runs.gateways.broker_health import broker_answers
from orchestrator.runs.views.task_form import curl_of, fresh_key
from orchestrator.tools.queries.relaxation_proposals import tool_proposals
from tenancy.core.event_kinds import FIGURES_DRIFT, format_headline
from tenancy.core.roles import Scope
from tenancy.db.change_cursor import mark_now
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.notifications.notices import told_lately
from tenancy.people.dual_control import loosened_alone
from tenancy.people.member_queries import names_of
from tenancy.web.page_auth import PageRequest, require_member
from traces.live.feeds import Fragments

FIRST = "support-refund"
"""The workflow whose ready goal reaches a decision of people soonest."""


def first_starters() -> tuple[Starter, ...]:
    """Return one ready-made goal of each workflow, the one that reaches a decision soonest first."""
    found = {starter.workflow: starter for starter in reversed(bundled_content.load_example_goals())}
    return tuple(sorted(found.values(), key=lambda starter: (starter.workflow != FIRST, starter.workflow)))


@require_safe
@require_member(Scope.READ)
def show_dashboard_page(request: PageRequest) -> HttpResponse:
    """Render the start page. Before the first run, it lists goals that can be started now."""
    broker = broker_answers()
    with tenant_transaction(request.member.tenant.id):
        # The mark is read before the numbers: changes in between are sent again by the socket.
        seq = str(mark_now())
        shown = _build_dashboard_context(decider_of(request.member))
        starters = list_offered_goals(first_starters()) if shown["seen"].fresh else ()
    return render(
        request,
        "orchestrator/overview.html",
        {
            **shown,
            "seq": seq,
            "broker": broker,
            "starters": starters,
            "may_submit": request.member.may(Scope.SUBMIT),
            "may_admin": request.member.may(Scope.ADMIN),
            "key": fresh_key(),
            "curl": curl_of(request, starters[0].starter.workflow, starters[0].goal) if starters else "",
        },
    )


def overview_fragments(tenant_id: UUID, after: str, scopes: tuple[str, ...], view: str) -> Fragments:
    """Render the bands for their reader if anything of the tenant changed after a mark.

    Opens the tenant's transaction.
    """
    with tenant_transaction(tenant_id):
        found = has_changed_since(after)
        decider = reader_of(tenant_id, parse_followed_view(view).reader)
        if decider is None or not found.anything:
            return Fragments(after, found.seq, "")
        shown = _build_dashboard_context(decider)
    html = render_to_string("orchestrator/fragments/overview.html", {**shown, "broker": broker_answers()})
    return Fragments(after, found.seq, html)


def _build_dashboard_context(decider: Decider) -> dict[str, Any]:
    at = database_now()
    # Proposed changes are shown to readers of the audit log only.
    may_inspect = Scope.INSPECT.value in decider.scopes
    return {
        "seen": read(at, decider), "alerts": standing_alerts(at), "told": told_lately(at),
        "drifts": [_build_drift_row(flag) for flag in standing_drifts()],
        **({"waiting_changes": len(tool_proposals()), **_list_unilateral_changes(at)} if may_inspect else {}),
    }  # fmt: skip


def _list_unilateral_changes(at: datetime) -> dict[str, Any]:
    """Return recent loosening changes that one administrator made alone, with their authors' names."""
    found = loosened_alone(at)
    return {"alone": found, "alone_by": names_of(one.principal for one in found)}


def _build_drift_row(flag: DriftFlag) -> dict[str, Any]:
    said = format_headline(FIGURES_DRIFT, {"workflow": flag.workflow, "metric": flag.metric})
    return {"row": flag, "headline": said}
