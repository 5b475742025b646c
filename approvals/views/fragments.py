"""Render the fragments that keep an open inbox page current, with the page's templates (R-APPR-9)."""

from typing import Any
from uuid import UUID

from django.template.loader import render_to_string

from approvals.core.policy import Decider
from approvals.models import Request
from approvals.queries.inbox import PICKED, counts_of, list_request_ids_in_tab, rows_of, several_fit
from approvals.queries.live_requests import ChangedRequests, changed_requests, written_since
from approvals.views.inbox import list_address
from approvals.views.live_inbox import FollowedTab, parse_followed_view, reader_of
from tenancy.db.tenant_context import tenant_transaction
from traces.live.feeds import Fragments


def inbox_fragments(tenant_id: UUID, after: str, scopes: tuple[str, ...], view: str) -> Fragments:
    """Render the changes in the inbox after a cursor. Opens the tenant's transaction.

    The fragments hold the current row of each changed request and the state of an open card, the requests
    that entered or left the shown tab under its filters, and the number of requests in each tab.
    """
    shown = parse_followed_view(view)
    with tenant_transaction(tenant_id):
        found = changed_requests(after)
        if not found.requests:
            return Fragments(after, found.seq, "", found.more)
        decider = reader_of(tenant_id, shown.reader)
        context: dict[str, Any] = {"rows": rows_of(found.requests, None)}
        if decider is not None:
            context |= _list_of(shown, decider, found, after)
            context["counts"] = {} if found.more else counts_of(decider)
        html = render_to_string("approvals/fragments.html", context)
    return Fragments(after, found.seq, html, found.more)


def _list_of(shown: FollowedTab, decider: Decider, found: ChangedRequests, after: str) -> dict[str, Any]:
    """Return the requests that entered or left the list, and whether several can be decided together.

    A change to an older request brings the request onto no page: its place in the list does not change.
    """
    if shown.tab is None:
        return {}
    ids = [request.id for request in found.requests]
    there = list_request_ids_in_tab(shown.tab, decider, shown.filters, ids)
    fresh = written_since(there, after)
    entering: list[Request] = [request for request in found.requests if request.id in fresh]
    return {
        "entering": rows_of(entering, decider),
        "left": [one for one in ids if one not in there],
        "list_url": list_address(shown.tab, shown.filters),
        "filters": shown.filters,
        "pickable": shown.tab in PICKED,
        "picks": several_fit(shown.tab, decider, shown.filters),
    }
