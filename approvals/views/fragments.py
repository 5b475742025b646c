"""What the inbox's page applies to follow it, drawn by the templates that drew the page (R-APPR-9)."""

from uuid import UUID

from django.template.loader import render_to_string

from approvals.queries.changes import changed_requests
from approvals.queries.waiting import rows_of
from tenancy.context import tenant
from traces.live.feeds import Fragments


def inbox_fragments(tenant_id: UUID, after: str, scopes: tuple[str, ...], view: str = "") -> Fragments:
    """What changed in the inbox after a cursor: each request's row as it stands, new ones under `arrivals`,
    and the state of an open card. Nothing depends on the viewer. Opens the tenant's transaction.
    """
    with tenant(tenant_id):
        found = changed_requests(after)
        rows = rows_of(found.requests, None)
        html = render_to_string("approvals/fragments.html", {"rows": rows}) if rows else ""
    return Fragments(after, found.seq, html, found.more)
