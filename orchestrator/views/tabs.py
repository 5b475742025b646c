"""The tabs of a run's page: each reads what it shows, and no more. Inside the tenant's context."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from orchestrator.api import shown
from orchestrator.core.drawing import picture
from orchestrator.core.state import State
from orchestrator.core.terminal import TERMINAL_STATUSES, Status
from orchestrator.models import Run
from orchestrator.queries.acts import acts_of
from orchestrator.queries.contents import conversation, facts_of, ledger_of
from orchestrator.queries.listing import names_of
from orchestrator.queries.runs import path_of, result_of
from orchestrator.queries.standing import dials, manifest
from orchestrator.queries.timeline import A_PAGE, SHOWS, found, full, timeline
from orchestrator.runtime.recall import graph_of
from tenancy.pages import PageRequest
from traces.models import Event
from traces.verify import verify_run

Context = dict[str, Any]
TABS: Final[Mapping[str, tuple[str, str]]] = {
    "timeline": ("Timeline", "1"),
    "graph": ("Graph", "2"),
    "messages": ("Messages", "3"),
    "ledger": ("Ledger", "4"),
    "audit": ("Audit", "5"),
    "facts": ("Facts", "6"),
    "raw": ("Raw", "7"),
}
FILTERS: Final = {
    "all": "All", "problems": "Problems", "model": "Model", "tools": "Tools", "approvals": "Approvals",
    "money": "Money",
}  # fmt: skip
# A trace up to this long is verified as its page is drawn; a longer one when somebody asks.
QUICK: Final = 500
RAW: Final = 50
LONGEST: Final = 200


def body_of(tab: str, run: Run, state: State, request: PageRequest) -> Context:
    """What one tab shows."""
    return READS[tab](run, state, request)


def before_of(request: PageRequest) -> int | None:
    """The event up to which is asked for; None: the newest."""
    text = request.GET.get("before", "")
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) <= 12 else None


def _timeline(run: Run, _state: State, request: PageRequest) -> Context:
    show = request.GET.get("show", "all")
    show = show if show in SHOWS else "all"
    text = request.GET.get("q", "").strip().replace("\0", "")[:LONGEST]
    whole, before = request.GET.get("rows") == "each", before_of(request)
    if show != "all" or text:
        stretch = found(run.id, run.event_seq, show=show, text=text, before=before)
    elif whole:
        stretch = full(run.id, run.event_seq, before)
    else:
        stretch = timeline(run.id, run.event_seq, before)
    return {
        "stretch": stretch, "show": show, "q": text, "each": whole, "filters": list(FILTERS.items()),
        "follows": show == "all" and not text and not whole and before is None, "page_size": A_PAGE,
        "before": before,
    }  # fmt: skip


def _graph(run: Run, _state: State, _request: PageRequest) -> Context:
    graph = graph_of(run.tenant_id, run.workflow_version_id)
    over = Status(run.status) in TERMINAL_STATUSES
    failed = run.position if over and run.status in ("failed", "expired") else None
    lit = picture(graph, path=path_of(run.id), current=None if failed else run.position, failed=failed)
    return {"picture": lit, "graph_label": f"The way of this run through {run.workflow}"}


def _messages(run: Run, _state: State, request: PageRequest) -> Context:
    return {"conversation": conversation(run.id, before_of(request))}


def _facts(run: Run, state: State, _request: PageRequest) -> Context:
    return {"facts": facts_of(run.id, state)}


def _ledger(run: Run, _state: State, _request: PageRequest) -> Context:
    cost = next((dial.meter for dial in dials(run.id) if dial.unit == "usd"), None)
    book = ledger_of(run.id)
    agrees = cost is not None and (cost.used, cost.reserved) == (book.used, book.reserved)
    return {"book": book, "cost": cost, "agrees": agrees}


def _audit(run: Run, _state: State, request: PageRequest) -> Context:
    verify = run.event_seq <= QUICK or "verify" in request.GET
    return {"acts": acts_of(run), "verified": verify, "faults": verify_run(run.id)[:20] if verify else ()}


def _raw(run: Run, _state: State, request: PageRequest) -> Context:
    before = min(before_of(request) or run.event_seq, run.event_seq)
    events = Event.objects.filter(run_id=run.id, seq__lte=before).order_by("-seq")[:RAW]
    lines = [orjson.dumps(shown.event(event)).decode() for event in events]
    whole = orjson.dumps(shown.whole(run), option=orjson.OPT_INDENT_2).decode()
    return {"raw": whole, "lines": lines[::-1], "earlier": before - RAW if before > RAW else None}


READS: Final[Mapping[str, Callable[[Run, State, PageRequest], Context]]] = {
    "timeline": _timeline, "graph": _graph, "messages": _messages, "facts": _facts, "ledger": _ledger,
    "audit": _audit, "raw": _raw,
}  # fmt: skip


def rail_of(run: Run, request: PageRequest) -> Context:
    """What stands beside every tab: the goal, what the run is pinned to, its result."""
    admitted = manifest(run.id)
    return {
        "goal": admitted["goal"],
        "admitted": admitted,
        "started_by": names_of([run.submitted_by]).get(run.submitted_by, ""),
        "result": result_of(run),
        "address": request.build_absolute_uri(f"/api/v1/runs/{run.id}"),
    }
