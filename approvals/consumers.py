"""What of approvals can be followed: the tenant's requests (R-API-5)."""

from approvals.api.requests import row
from approvals.queries.changes import changed_requests
from traces.live.feeds import StateFeed, StateFragments


def inbox_feed(fragments: StateFragments | None = None) -> StateFeed:
    """The tenant's requests, each as it stands after a change."""
    return StateFeed("requests", changed_requests, row, fragments)
