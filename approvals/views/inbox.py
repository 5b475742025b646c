"""GET /approvals, list and packet side by side (R-UI-4, R-APPR-9)."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render, resolve_url
from django.views.decorators.http import require_safe

from approvals.core.policy import RISKS, Decider
from approvals.queries.inbox import (
    PICKED,
    TABS,
    Filters,
    Inbox,
    Row,
    Tab,
    counts_of,
    decided_lately,
    filters_of,
    inbox_page,
    several_fit,
    tools_that_ask,
    workflows_that_ask,
)
from approvals.queries.people import decider_of
from approvals.views.decision_form import row_id
from approvals.views.live_inbox import KEPT, view_text
from approvals.views.request_detail import CardContext, shown_card
from approvals.views.undo import list_undoable_requests
from tenancy.core.roles import Scope
from tenancy.db.change_cursor import mark_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.web.page_auth import Member, PageRequest, require_member

NAMES = {"mine": "Mine", "open": "All open", "snoozed": "Snoozed", "decided": "Decided"}
MOST_DONE = 50


@require_safe
@require_member(Scope.READ)
def show_inbox_page(request: PageRequest) -> HttpResponse:
    """Render one tab of requests, with one request open next to the list.

    The tabs hold the requests for this person, all open ones, snoozed ones and decided ones.
    """
    member = request.member
    tab, filters, done = _parse_tab(request), filters_of(request.GET), _parse_done_ids(request)
    with tenant_transaction(member.tenant.id):
        seq = str(mark_now())
        decider = decider_of(member)
        found = inbox_page(tab, decider, filters, cursor=request.GET.get("cursor", ""), done=done)
        chosen = _choose_open_request(request, found, done)
        context = {
            **_build_inbox_context(decider, tab, filters, found, done),
            "shown": _build_chosen_card(
                member, chosen, found, back=list_address(tab, filters, done), done=done
            ),
            "offers": list_undoable_requests(member),
            "seq": seq,
            "view": KEPT if request.GET.get("cursor") else view_text(tab, filters),
            "tools": tools_that_ask(),
            "workflows": workflows_that_ask(),
            "chosen": chosen,
            "lately": None if found.rows else decided_lately(),
            "landed": bool(done),
            "asked_for": "open" in request.GET,
            "pickable": tab in PICKED,
            "picks": several_fit(tab, decider, filters),
        }
        return render(request, "approvals/inbox.html", context)


def _build_inbox_context(
    decider: Decider, tab: Tab, filters: Filters, found: Inbox, done: Sequence[UUID]
) -> dict[str, Any]:
    counts = counts_of(decider)
    return {
        "inbox": found,
        "tab": tab,
        "tabs": [(name, NAMES[name], list_address(name, filters), counts.get(name)) for name in TABS],
        "filters": filters,
        "risks": RISKS,
        "without": [
            (name, value, list_address(tab, filters, but=name))
            for name, value in filters.active_filters.items()
        ],
        "list_url": list_address(tab, filters, done),
        "more": list_address(tab, filters, done, cursor=found.next) if found.next else "",
        "may_decide": Scope.DECIDE.value in decider.scopes,
    }


def _build_chosen_card(
    member: Member, chosen: UUID | None, found: Inbox, *, back: str, done: Sequence[UUID]
) -> CardContext | None:
    if chosen is None:
        return None
    following = _choose_next_request(found.rows, chosen, done)
    return shown_card(member, chosen, back=back, next=str(following or ""))


def _parse_tab(request: PageRequest) -> Tab:
    asked = request.GET.get("tab", "")
    return next((tab for tab in TABS if tab == asked), "mine")


def _parse_done_ids(request: PageRequest) -> tuple[UUID, ...]:
    found = [row_id(text) for text in request.GET.getlist("done")[-MOST_DONE:]]
    return tuple(dict.fromkeys(one for one in found if one is not None))


def _choose_open_request(request: PageRequest, found: Inbox, done: Sequence[UUID]) -> UUID | None:
    """Choose the request to open: the one asked for, otherwise the first that is not done."""
    asked = row_id(request.GET.get("open", ""))
    if asked is not None:
        return asked
    ids = [row.request.id for row in found.rows]
    return next((one for one in ids if one not in done), ids[0] if ids else None)


def _choose_next_request(rows: Sequence[Row], chosen: UUID, done: Sequence[UUID]) -> UUID | None:
    """Choose the next request after the chosen one that still waits, wrapping around at the end."""
    ids = [row.request.id for row in rows]
    at = ids.index(chosen) + 1 if chosen in ids else 0
    turn = [*rows[at:], *rows[:at]]
    waiting = [row.request.id for row in turn if row.is_open and row.request.id not in (*done, chosen)]
    return waiting[0] if waiting else None


def list_address(
    tab: str, filters: Filters, done: Sequence[UUID] = (), *, but: str = "", cursor: str = ""
) -> str:
    """Build a list's address. It always has a query, so that more parameters can be appended."""
    query = [("tab", tab), *((name, value) for name, value in filters.active_filters.items() if name != but)]
    query += [("done", str(one)) for one in done]
    query += [("cursor", cursor)] if cursor else []
    return f"{resolve_url('approvals')}?{urlencode(query)}"
