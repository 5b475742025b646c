"""Live feed of approvals: the tenant's requests (R-API-5)."""

from collections.abc import Callable
from uuid import UUID

from approvals.api.requests import encode_request_row
from approvals.queries.live_requests import changed_requests
from traces.live.feeds import StateFeed, StateFragments

ViewOf = Callable[[object, UUID], str]


class InboxFeed(StateFeed):
    """The tenant's requests, each in its state after a change; a page sees them as its reader may."""

    def __init__(self, fragments: StateFragments, view_of: ViewOf) -> None:
        super().__init__("requests", changed_requests, encode_request_row, fragments)
        self._view_of = view_of

    def view(self, given: object, reader: UUID) -> str:
        """Return the tab that the reader's page shows.

        Raises: ValueError.
        """
        return self._view_of(given, reader)
