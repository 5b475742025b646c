"""The part of the inbox that a page follows: a tab with its filters, for one reader (R-APPR-9)."""

from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlencode
from uuid import UUID

from approvals.core.policy import Decider
from approvals.queries.inbox import TABS, Filters, Tab, filters_of
from approvals.queries.people import decider_of
from tenancy.queries import standing_of

KEPT: Final = "kept"
"""The view of a list in which nothing new comes: a later page, or a card alone."""
LONGEST: Final = 400
READER: Final = "reader"


class FollowedTab(NamedTuple):
    """A tab (None: no list), its filters and its reader."""

    tab: Tab | None
    filters: Filters
    reader: UUID


def view_text(tab: Tab, filters: Filters) -> str:
    """Encode the tab and the filters that a page shows."""
    return urlencode({"tab": tab, **filters.active_filters})


def view_of(given: object, reader: UUID) -> str:
    """Return the view of a page with its reader.

    Raises: ValueError if the given text is not a view.
    """
    said = given or KEPT
    if not isinstance(said, str) or len(said) > LONGEST:
        raise ValueError("the view is no part of the inbox")
    if said == KEPT:
        return urlencode({READER: reader})
    named = dict(parse_qsl(said, strict_parsing=True))
    tab = next((tab for tab in TABS if tab == named.get("tab")), None)
    if tab is None:
        raise ValueError("the view is no part of the inbox")
    return f"{view_text(tab, filters_of(named))}&{READER}={reader}"


def parse_followed_view(view: str) -> FollowedTab:
    """Parse a view that `view_of` built."""
    named = dict(parse_qsl(view))
    tab = next((tab for tab in TABS if tab == named.get("tab")), None)
    return FollowedTab(tab, filters_of(named), UUID(named[READER]))


def reader_of(tenant_id: UUID, reader: UUID) -> Decider | None:
    """Return the reader as a decider with current rights, None for a reader who no longer has access."""
    standing = standing_of(tenant_id, reader)
    return decider_of(standing) if standing is not None else None
