"""What of approvals can be followed: the tenant's requests (R-API-5)."""

from collections.abc import Callable
from uuid import UUID

import orjson

from approvals.api.requests import row
from approvals.queries.changes import changed_requests
from tenancy.context import tenant
from tenancy.marks import mark_text
from traces.live.feeds import Batch, Cursor, Feed, Fragments, Item
from traces.live.publishing import group_of_tenant

InboxFragments = Callable[[UUID, str, tuple[str, ...]], Fragments]


class InboxFeed(Feed):
    """The tenant's requests, each as it stands after a change. Its subject is the tenant."""

    items = "requests"
    states = True

    def __init__(self, fragments: InboxFragments | None = None) -> None:
        self._fragments = fragments
        self.pages = fragments is not None

    def cursor(self, given: object) -> Cursor:
        """A mark's text. Raises ValueError."""
        return mark_text(given)

    def group(self, tenant_id: UUID, subject: UUID) -> str:
        """The tenant's."""
        return group_of_tenant(tenant_id)

    def find(self, tenant_id: UUID, subject: UUID) -> bool:
        """Whether it is the tenant's own inbox."""
        return tenant_id == subject

    def read(self, tenant_id: UUID, subject: UUID, after: Cursor) -> Batch:
        """The rows that changed."""
        with tenant(tenant_id):
            found = changed_requests(str(after))
            items = tuple(Item(0, orjson.dumps(row(request))) for request in found.requests)
        return Batch(found.seq, items, more=found.more)

    def render(self, tenant_id: UUID, subject: UUID, after: Cursor, scopes: tuple[str, ...]) -> Fragments:
        """What the inbox's page applies."""
        assert self._fragments is not None  # noqa: S101 - not called where there are no pages
        return self._fragments(tenant_id, str(after), scopes)
