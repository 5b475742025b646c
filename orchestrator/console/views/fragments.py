"""Fragments that update a run's page or the list of runs in place (R-SESS-11).

The fragments use the page's own templates. A row has the same content whenever it is rendered; the state,
the dials and the open requests replace their previous content. A fragment depends on the viewer's scopes
only, so one rendering serves all viewers with the same scopes.
"""

from typing import Any
from uuid import UUID

from django.template.loader import render_to_string

from approvals.models import Request
from approvals.queries.inbox import rows_of as rows_of_requests
from orchestrator.console.queries.change_feed import changed_runs, get_run_change_token
from orchestrator.console.queries.failure_details import told_by_source
from orchestrator.console.queries.run_summary import list_run_limits, standing_of
from orchestrator.console.queries.tripped_breakers import breakers_of
from orchestrator.console.views.incremental_updates import NEWS, RUN_VIEWS
from orchestrator.console.views.results import outcome_of
from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.domain.run_state import RunState
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.retry_lineage import retried_as
from orchestrator.runs.queries.run_list import LIVE, VIEWS, rows_of, view_counts, waiting_of
from orchestrator.runs.queries.runs import result_of, run_of, state_now
from orchestrator.spending.queries.estimates import with_remaining_estimates
from tenancy.core.roles import Scope
from tenancy.db.change_cursor import SLACK, ChangeCursor, mark_of
from tenancy.db.tenant_context import tenant_transaction
from traces.live.feeds import Cursor, Fragments, extract_sequence

REQUESTS = 4
KEPT = "kept"
"""The view of a list in which nothing new comes: by filters, or a later page."""
LIST_VIEWS = (*reversed(tuple(VIEWS)), KEPT)
__all__ = ["LIST_VIEWS", "RUN_VIEWS", "head_of", "list_fragments", "run_fragments"]


def head_of(run: Run, state: RunState, scopes: tuple[str, ...], stands: str = "") -> dict[str, Any]:
    """Build the context above the tabs: state and sentence, dials, open request and available actions.

    `stands` is the change token read before any of the other data.
    """
    live = run.status in LIVE
    return {
        "run": run,
        "live": live,
        "standing": standing_of(run, state),
        "told": told_by_source(run, state),
        "dials": with_remaining_estimates(list_run_limits(run.id), run, state),
        "breakers": breakers_of(run),
        "speaking": [effect for effect, pending in state.pending.items() if pending.kind == "call_model"],
        "waiting": waiting_of([run.id]).get(run.id),
        "may_pause": live and run.status != "paused" and Scope.OPERATE in scopes,
        "may_resume": run.status == "paused" and Scope.OPERATE in scopes,
        "may_cancel": live and Scope.SUBMIT in scopes,
        "may_retry": {Scope.OPERATE, Scope.SUBMIT} <= set(scopes) and _is_retryable(run),
        "seq": f"{run.event_seq}.{stands or get_run_change_token(run.id)}",
    }


def _is_retryable(run: Run) -> bool:
    """Return whether the run ended without its result and no other run was started from its records."""
    ended = run.status not in LIVE and run.terminal_code != TerminalCode.SUCCESS
    return ended and retried_as(run.id) is None


def run_fragments(
    tenant_id: UUID, run_id: UUID, after: Cursor, scopes: tuple[str, ...], view: str = "timeline"
) -> Fragments:
    """Render the run's news after a cursor for the tab `view`: new events and changes outside the trace.

    Opens the tenant's transaction.

    Raises: RunNotFound.
    """
    with tenant_transaction(tenant_id):
        # The token is read first: a change during rendering is sent again.
        stands = get_run_change_token(run_id)
        run, seen = run_of(run_id), extract_sequence(after)
        if run.event_seq <= seen and str(after).endswith(f".{stands}"):
            return Fragments(after, after, "")
        state = state_now(run.id)
        news = NEWS[view](run, state, min(seen, run.event_seq))
        if news.more:
            some = render_to_string(f"orchestrator/fragments/{view}.html", {"run": run, **news.context})
            return Fragments(after, f"{news.seq}.{str(after).partition('.')[2] or 0}", some, more=True)
        context = news.context | head_of(run, state, scopes, stands)
        document = result_of(run)
        context |= {"result": document, "outcome": outcome_of(document)}
        context["ended"] = run.finished_at is not None and run.event_seq > seen
        if not str(after).endswith(f".{stands}"):
            context |= requests_of(run)
        parts = (f"orchestrator/fragments/{view}.html", "orchestrator/fragments/run.html")
        html = "".join(render_to_string(part, context) for part in parts)
    return Fragments(after, f"{run.event_seq}.{stands}", html)


def requests_of(run: Run) -> dict[str, Any]:
    """Return the newest requests of a run with their decisions, and which of them are settled."""
    newest = Request.objects.filter(run_id=run.id).order_by("-created_at", "-id")[:REQUESTS]
    rows = rows_of_requests(list(newest), None)
    return {"rows": rows, "settled": [row for row in rows if not row.is_open]}


def _should_enter_view(run: Run, view: str, mark: ChangeCursor | None) -> bool:
    """Return whether a changed run belongs at the top of a view.

    The list of all runs takes new runs only: an older one has its place on a later page.
    """
    if view not in VIEWS:
        return False
    return run.status in VIEWS[view] if VIEWS[view] else mark is None or run.created_at >= mark.at - SLACK


def list_fragments(tenant_id: UUID, after: str, scopes: tuple[str, ...] = (), view: str = "all") -> Fragments:
    """Render the rows that changed after a mark, those that enter a view, and the counts of all views.

    Opens the tenant's transaction.
    """
    with tenant_transaction(tenant_id):
        changed = changed_runs(after)
        if not changed.runs:
            return Fragments(after, changed.seq, "", changed.more)
        newest_first = sorted(changed.runs, key=lambda run: (run.created_at, run.id), reverse=True)
        rows = rows_of(newest_first)
        entering = [row for row in rows if _should_enter_view(row.run, view, mark_of(after))]
        counts = {} if changed.more else view_counts()
        context = {"rows": rows, "entering": entering, "counts": counts}
        html = render_to_string("orchestrator/fragments/runs.html", context)
    return Fragments(after, changed.seq, html, changed.more)
