"""GET /runs/<id> and the actions on a run (R-UI-3)."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from approvals.queries.people import names_of
from approvals.views.request_detail import CardContext, shown_card
from orchestrator.console.queries.change_feed import get_run_change_token
from orchestrator.console.queries.run_contents import contents_of
from orchestrator.console.queries.run_summary import effects_done, load_run_pins
from orchestrator.console.queries.timeline import row_at, with_names
from orchestrator.console.views.fragments import head_of
from orchestrator.console.views.incremental_updates import RUN_VIEWS
from orchestrator.console.views.results import outcome_of
from orchestrator.console.views.runs import LONGEST_REASON, WISHES
from orchestrator.console.views.tabs import FORMER, TABS, body_of, rail_of
from orchestrator.core.common.run_status import Status
from orchestrator.core.domain.run_state import RunState
from orchestrator.decisions.queries.in_doubt_changes import doubts_of
from orchestrator.policies.queries.policies import scope_held
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.replays import replay_stored_run
from orchestrator.runs.queries.retry_lineage import retried_as
from orchestrator.runs.queries.run_list import WaitingRequest
from orchestrator.runs.queries.runs import run_of, state_now
from orchestrator.runs.views.task_scope import Reach, by_reason, reach_of
from tenancy.core.errors import NotFound
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.web.page_auth import PageRequest, check_scopes, redirect_unless_post, require_member
from traces.exports.jsonl import export_trace

# Tabs that show the model's text while it is being written.
WRITES = ("timeline", "messages")


@require_safe
@require_member(Scope.READ)
def show_run_page(request: PageRequest, run_id: UUID) -> HttpResponse:
    """Render the run: its state with the reason, its limits, the open decision, then one tab."""
    named = request.GET.get("tab", "")
    asked = FORMER.get(named, named)
    tab = asked if asked in TABS else "timeline"
    with tenant_transaction(request.member.tenant.id):
        # The token is read first: changes during rendering are sent by the socket.
        stands = get_run_change_token(run_id)
        found = run_of(run_id)
        state = state_now(found.id)
        head = head_of(found, state, request.member.scopes, stands)
        body, rail = body_of(tab, found, state, request), rail_of(found, request)
        context = {
            **head,
            "shown": _build_request_card(request, head["waiting"]),
            **rail,
            "outcome": outcome_of(rail["result"]),
            **_build_task_scope_context(found.id),
            **_build_lineage_context(found, state),
            **body,
            "tab": tab,
            "writes": head["live"] and tab in WRITES and body["follows"] and _has_streaming_model(found),
            "view": tab if tab in RUN_VIEWS and body.get("follows", True) else "head",
            "short": str(found.id)[-8:],
            "tabs": [(name, word, key) for name, (word, key) in TABS.items()],
        }
        return render(request, "orchestrator/run.html", context)


def _has_streaming_model(run: Run) -> bool:
    """Return whether a model of the run streams its text."""
    return any(profile.streams for profile in load_run_pins(run).profiles)


def _build_lineage_context(run: Run, state: RunState) -> dict[str, Any]:
    """Return the run's retry, the author of the run if it is a retry, and its number of doubtful changes."""
    by = run.retried_by
    return {
        "again": retried_as(run.id),
        "retried_by": names_of([by]).get(by, "") if by else "",
        "doubts": len(doubts_of(run, state)),
    }


def _build_task_scope_context(run_id: UUID) -> dict[str, Any]:
    """Return the reach of the run's changes, and its missing tools and cautions, grouped by reason."""
    held = scope_held(run_id)
    reach: Reach = reach_of(held.scope, held.granted, held.policy)
    return {
        "reach": reach,
        "left_out": by_reason(held.left_out),
        "cautions": by_reason(held.cautions),
    }


def _build_request_card(request: PageRequest, waiting: WaitingRequest | None) -> CardContext | None:
    """Build the inbox card of the open request for a member who may decide it.

    The card is also built for a member who can undo a decision, or could decide but for a deferred approval.
    Otherwise the result is None.
    """
    if waiting is None:
        return None
    shown = shown_card(request.member, waiting.request, back=request.get_full_path())
    waits = shown.card.row.stands and shown.card.row.refusal is None
    return shown if shown.card.decidable or shown.undoable or waits else None


@require_safe
@require_member(Scope.READ)
def show_timeline_row(request: PageRequest, run_id: UUID, seq: int) -> HttpResponse:
    """Render one opened row of the timeline: its events with their requests and responses.

    The response is a fragment for htmx requests, else a page.
    """
    with tenant_transaction(request.member.tenant.id):
        found = run_of(run_id)
        held = row_at(found.id, min(seq, found.event_seq))
        if held is None:
            raise NotFound
        contents = contents_of(found.id, held.events)
        (shown,) = with_names([held])
        context = {
            "run": found,
            "shown": shown,
            "opened": [(told, said, contents[told.seq]) for told, said in shown.event_sentences],
        }
        part = "orchestrator/_opened.html" if request.headers.get("HX-Request") else "orchestrator/row.html"
        return render(request, part, context)


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.READ)
def show_run_action_page(request: PageRequest, run_id: UUID) -> HttpResponse:
    """Render the confirmation of pause, resume or cancel with its effects. A POST performs the action."""
    given = request.POST if request.method == "POST" else request.GET
    name = given.get("wish", "")
    if name not in WISHES:
        raise NotFound
    wish = WISHES[name]
    check_scopes(request.member, wish.scope)
    fault, reason = "", request.POST.get("reason", "").strip()[:LONGEST_REASON]
    if request.method == "POST":
        if reason or name != "cancel":
            wish.verb(request.member.tenant.id, run_id, by=request.member.principal, reason=reason)
            messages.success(request, f"{wish.word} asked for.")
            return redirect("run", run_id)
        fault = "Say why: the reason stands in the trace."
    with tenant_transaction(request.member.tenant.id):
        found = run_of(run_id)
        done = effects_done(found) if name == "cancel" else ()
        context: dict[str, Any] = {
            "run": found, "wish": wish, "name": name, "done": done, "fault": fault, "reason": reason,
            "fits": Status(found.status) in wish.states,
        }  # fmt: skip
        return render(request, "orchestrator/run_action.html", context, status=422 if fault else 200)


@redirect_unless_post("run", "run_id")
@require_member(Scope.READ)
def show_replay_page(request: PageRequest, run_id: UUID) -> HttpResponse:
    """Replay the recorded events in the core and compare. Nothing is called and nothing changes."""
    with tenant_transaction(request.member.tenant.id):
        found = run_of(run_id)
    report = replay_stored_run(request.member.tenant.id, found.id)
    return render(request, "orchestrator/replayed.html", {"run": found, "report": report})


@require_safe
@require_member(Scope.READ)
def download_trace_file(request: PageRequest, run_id: UUID) -> HttpResponse:
    """Send the trace as a file: self-contained JSON lines that can be verified without this server."""
    with tenant_transaction(request.member.tenant.id):
        found = run_of(run_id)
        lines = b"".join(export_trace(found.id))
    name = f'attachment; filename="{found.id}.jsonl"'
    return HttpResponse(lines, content_type="application/jsonl", headers={"Content-Disposition": name})
