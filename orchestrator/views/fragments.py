"""What a page applies to follow a run or the list, drawn by the templates that drew the page (R-SESS-11).

A row says the same whenever it is drawn; the state, the dials and what waits to be decided replace what stood
there. Nothing here depends on the viewer but by the scopes, so one drawing serves all who hold the same.
"""

from typing import Any
from uuid import UUID

from django.template.loader import render_to_string

from orchestrator.core.state import State
from orchestrator.models import Run
from orchestrator.queries.changes import changed_runs
from orchestrator.queries.listing import LIVE, rows_of, view_counts, waiting_of
from orchestrator.queries.runs import result_of, run_of, state_now
from orchestrator.queries.standing import dials, standing_of
from orchestrator.queries.timeline import grown
from tenancy.context import tenant
from tenancy.core.roles import Scope
from traces.live.feeds import Fragments

SETTLED = frozenset({"approval_decided", "approval_expired", "approval_withdrawn", "question_answered"})


def head_of(run: Run, state: State, scopes: tuple[str, ...]) -> dict[str, Any]:
    """What stands above the tabs: state and sentence, dials, the open request, what can be asked."""
    live = run.status in LIVE
    return {
        "run": run,
        "live": live,
        "standing": standing_of(run, state),
        "dials": dials(run.id),
        "waiting": waiting_of([run.id]).get(run.id),
        "may_pause": live and run.status != "paused" and Scope.OPERATE in scopes,
        "may_resume": run.status == "paused" and Scope.OPERATE in scopes,
        "may_cancel": live and Scope.SUBMIT in scopes,
        "seq": run.event_seq,
    }


def run_fragments(tenant_id: UUID, run_id: UUID, after: int, scopes: tuple[str, ...]) -> Fragments:
    """What came of a run after an event. Opens the tenant's transaction. Raises RunNotFound."""
    with tenant(tenant_id):
        run = run_of(run_id)
        if run.event_seq <= after:
            return Fragments(after, after, "")
        news = grown(run.id, after, run.event_seq)
        context: dict[str, Any] = {"run": run, "news": news, "whole": not news.more}
        if not news.more:
            context |= head_of(run, state_now(run.id), scopes) | {"result": result_of(run)}
        context["settled"] = [
            told
            for shown in (*news.new, *news.changed)
            for told in shown.row.events
            if told.seq > after and told.kind in SETTLED
        ]
        html = render_to_string("orchestrator/fragments/run.html", context)
    return Fragments(after, news.seq, html, news.more)


def list_fragments(tenant_id: UUID, after: str) -> Fragments:
    """The rows of the list that changed after a mark, and the counts of its views. Opens the tenant's
    transaction."""
    with tenant(tenant_id):
        changed = changed_runs(after)
        if not changed.runs:
            return Fragments(after, changed.seq, "", changed.more)
        newest_first = sorted(changed.runs, key=lambda run: (run.created_at, run.id), reverse=True)
        rows = rows_of(newest_first)
        counts = {} if changed.more else view_counts()
        html = render_to_string("orchestrator/fragments/runs.html", {"rows": rows, "counts": counts})
    return Fragments(after, changed.seq, html, changed.more)
