"""The tabs of a run's page. Each tab reads only what it shows. In the tenant's context."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from orchestrator.api import presenters
from orchestrator.console.queries.operator_actions import acts_of
from orchestrator.console.queries.plans import plan_of
from orchestrator.console.queries.run_contents import Ledger, ledger_of, load_conversation, load_known_facts
from orchestrator.console.queries.run_summary import list_run_limits, load_manifest_body
from orchestrator.console.queries.timeline import (
    A_PAGE,
    SHOWS,
    load_timeline_page,
    load_unfolded_timeline_page,
    search_timeline,
)
from orchestrator.console.views.run_plan import build_plan_context
from orchestrator.core.common.run_status import TERMINAL_STATUSES, Status
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.readmodel.graph_layout import overlay_run_path
from orchestrator.knowledge.views.files import files_of
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.run_list import names_of
from orchestrator.runs.queries.runs import result_of
from orchestrator.runs.queries.state_loader import graph_of
from orchestrator.spending.queries.business_cost import business_of
from orchestrator.spending.queries.estimates import limits_of
from tenancy.web.page_auth import PageRequest
from traces.models import Event
from traces.verification import verify_run

Context = dict[str, Any]
TABS: Final[Mapping[str, tuple[str, str]]] = {
    "timeline": ("Timeline", "1"),
    "plan": ("Plan", "2"),
    "messages": ("Messages", "3"),
    "ledger": ("Ledger", "4"),
    "audit": ("Audit", "5"),
    "facts": ("Facts", "6"),
    "raw": ("Raw", "7"),
    "files": ("Files", "8"),
}
FILTERS: Final = {
    "all": "All", "problems": "Problems", "model": "Model", "tools": "Tools", "approvals": "Approvals",
    "money": "Money",
}  # fmt: skip
FORMER: Final[Mapping[str, str]] = {"graph": "plan"}
"""What a tab was called before: an address that somebody kept goes on working."""
# A trace up to this length is verified whenever its page is rendered; a longer one on request.
QUICK: Final = 500
RAW: Final = 50
LONGEST: Final = 200


def body_of(tab: str, run: Run, state: RunState, request: PageRequest) -> Context:
    """Build the template context of one tab of a run's page."""
    return READS[tab](run, state, request)


def before_of(request: PageRequest) -> int | None:
    """Return the number of the last event requested by `?before=`; None for the newest."""
    text = request.GET.get("before", "")
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) <= 12 else None


def _build_timeline_tab(run: Run, _state: RunState, request: PageRequest) -> Context:
    show = request.GET.get("show", "all")
    show = show if show in SHOWS else "all"
    text = request.GET.get("q", "").strip().replace("\0", "")[:LONGEST]
    whole, before = request.GET.get("rows") == "each", before_of(request)
    if show != "all" or text:
        stretch = search_timeline(run.id, run.event_seq, show=show, text=text, before=before)
    elif whole:
        stretch = load_unfolded_timeline_page(run.id, run.event_seq, before)
    else:
        stretch = load_timeline_page(run.id, run.event_seq, before)
    return {
        "stretch": stretch, "show": show, "q": text, "each": whole, "filters": list(FILTERS.items()),
        "follows": show == "all" and not text and not whole and before is None, "page_size": A_PAGE,
        "before": before,
    }  # fmt: skip


def _build_plan_tab(run: Run, state: RunState, _request: PageRequest) -> Context:
    return ahead_of(run, state)


def ahead_of(run: Run, state: RunState) -> Context:
    """Build the context of the run's steps and criteria, and of its workflow graph.

    The graph shows the path of the run.
    """
    plan = plan_of(run, state)
    graph = graph_of(run.tenant_id, run.workflow_version_id)
    over = Status(run.status) in TERMINAL_STATUSES
    failed = run.position if over and run.status in ("failed", "expired") else None
    lit = overlay_run_path(graph, path=plan.path, current=None if failed else run.position, failed=failed)
    label = f"The way of this run through {run.workflow}"
    return build_plan_context(plan) | {"picture": lit, "graph_label": label}


def _build_messages_tab(run: Run, _state: RunState, request: PageRequest) -> Context:
    before = before_of(request)
    return {"conversation": load_conversation(run.id, before), "follows": before is None}


def _build_facts_tab(run: Run, state: RunState, request: PageRequest) -> Context:
    before, fact = before_of(request), request.GET.get("fact", "")
    stretch = load_known_facts(run.id, state, before, fact)
    return {"facts": stretch.facts, "earlier": stretch.earlier, "follows": before is None and not fact}


def _build_ledger_tab(run: Run, state: RunState, _request: PageRequest) -> Context:
    return book_of(run, ledger_of(run.id)) | {
        "limits": limits_of(run, state), "business": business_of(run),
    }  # fmt: skip


def book_of(run: Run, book: Ledger) -> Context:
    """Return the ledger entries, newest first, and whether their sums match the meter."""
    cost = next((dial.meter for dial in list_run_limits(run.id) if dial.unit == "usd"), None)
    agrees = cost is not None and (cost.used, cost.reserved) == (book.used, book.reserved)
    return {"book": book, "entries": book.entries[::-1], "cost": cost, "agrees": agrees}


def _build_audit_tab(run: Run, _state: RunState, request: PageRequest) -> Context:
    return {"acts": acts_of(run), **chain_of(run, asked="verify" in request.GET)}


def chain_of(run: Run, *, asked: bool = False) -> Context:
    """Verify the run's trace and return up to 20 faults.

    A trace is verified if it is short and the run is not in progress, or on request. During progress, one
    part of the trace may be ahead of another.
    """
    verify = (run.event_seq <= QUICK and run.status != Status.IN_PROGRESS) or asked
    return {"verified": verify, "faults": verify_run(run.id)[:20] if verify else ()}


def _build_raw_tab(run: Run, _state: RunState, request: PageRequest) -> Context:
    asked = before_of(request)
    before = min(asked or run.event_seq, run.event_seq)
    return {
        **whole_of(run), "lines": lines_of(run, before - RAW, before), "follows": asked is None,
        "earlier": before - RAW if before > RAW else None,
    }  # fmt: skip


def lines_of(run: Run, after: int, last: int) -> list[tuple[int, str]]:
    """Return the events after `after` up to `last` as the API shows them, each with its number."""
    events = Event.objects.filter(run_id=run.id, seq__gt=after, seq__lte=last).order_by("seq")
    return [(event.seq, orjson.dumps(presenters.serialize_trace_event(event)).decode()) for event in events]


def whole_of(run: Run) -> Context:
    """Return the run as the API shows it."""
    return {"raw": orjson.dumps(presenters.serialize_run(run), option=orjson.OPT_INDENT_2).decode()}


def _build_files_tab(run: Run, _state: RunState, _request: PageRequest) -> Context:
    return files_of(run)


READS: Final[Mapping[str, Callable[[Run, RunState, PageRequest], Context]]] = {
    "timeline": _build_timeline_tab,
    "plan": _build_plan_tab,
    "messages": _build_messages_tab,
    "facts": _build_facts_tab,
    "ledger": _build_ledger_tab,
    "audit": _build_audit_tab,
    "raw": _build_raw_tab,
    "files": _build_files_tab,
}


def rail_of(run: Run, request: PageRequest) -> Context:
    """Build the context that every tab shares.

    It holds the goal, the manifest, the submitter, the result and the API address.
    """
    admitted = load_manifest_body(run.id)
    return {
        "goal": admitted["goal"],
        "admitted": admitted,
        "started_by": names_of([run.submitted_by]).get(run.submitted_by, ""),
        "result": result_of(run),
        "address": request.build_absolute_uri(f"/api/v1/runs/{run.id}"),
    }
