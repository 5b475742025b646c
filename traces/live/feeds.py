"""Feeds: the port between the reader of a process and the packages that provide the data to follow.

Every feed has a scripted counterpart in `traces.live.scripted_feed`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

import orjson

from tenancy.core.reach import Reach
from tenancy.db.change_cursor import mark_text
from tenancy.db.tenant_context import restrict_to_reach, tenant_transaction
from traces.live.hints import group_of_tenant

Cursor = int | str
"""Where a reader stands in a feed: a run's sequence number, for a page with what stands beside the events
("12.9f3c"); or a list's mark (tenancy/db/change_cursor.py). Opaque to clients."""


class Item(NamedTuple):
    """One element of a feed as JSON. `seq` is its position; all items of a list have the position 0."""

    seq: int
    body: bytes


class Batch(NamedTuple):
    """The content of a feed after a cursor.

    `seq` is the cursor after the batch, `beside` contains further fields of the frame as JSON (the progress
    envelope), `more` says that there is more already, `end` is the final message (JSON) of a subject that has
    ended and was read completely.
    """

    seq: Cursor
    items: tuple[Item, ...]
    beside: Mapping[str, bytes] = {}
    more: bool = False
    end: bytes | None = None


class Fragments(NamedTuple):
    """HTML fragments that a page applies to move from one cursor to another.

    `html` is a string of elements. An element with `data-append="<id>"` has those of its children appended to
    the element `<id>` whose own id does not exist yet; any other element replaces the element of the same id.
    `more`: there is more already after `seq`.
    """

    after: Cursor
    seq: Cursor
    html: str
    more: bool = False


class Feed(Protocol):
    """A subject to follow. All methods block and run in a reader's thread, outside any transaction."""

    items: str
    """What a frame calls its items: events, runs, requests."""
    states: bool
    """Whether items are states, which may come twice, or events, which come once. The cursors of states are
    texts in whose order an earlier one comes first."""
    pages: bool
    """Whether it can be rendered for a page."""
    views: tuple[str, ...]
    """The parts of the page that can be followed, the first where a page names none."""
    former: Mapping[str, str] = {}
    """What parts were called before: a page that was opened then goes on."""

    def cursor(self, given: object) -> Cursor:
        """Parse a client's cursor; None and "" are the beginning.

        Raises: ValueError for an invalid cursor.
        """
        ...

    def view(self, given: object, reader: UUID) -> str:
        """Return the part of the page that a principal requests, as `render` takes it.

        Readers with the same result share one rendering.

        Raises: ValueError for an unknown part.
        """
        asked = str(given or self.views[0])
        asked = self.former.get(asked, asked)
        if asked not in self.views:
            raise ValueError("the view is no part of the page")
        return asked

    def format_external_text(self, text: str) -> str:
        """Return an external text in the form in which a page shows it where markup is impossible."""
        return text

    def group(self, tenant_id: UUID, subject: UUID) -> str:
        """Return the channel group whose hints announce news."""
        ...

    def find(self, tenant_id: UUID, subject: UUID) -> bool:
        """Return whether the tenant has the subject; a subject of another tenant does not exist."""
        ...

    def read(self, tenant_id: UUID, subject: UUID, after: Cursor) -> Batch:
        """Return what came after a cursor, oldest first, a bounded number."""
        ...

    def render(
        self, tenant_id: UUID, subject: UUID, after: Cursor, scopes: tuple[str, ...], view: str = ""
    ) -> Fragments:
        """Return the same for a page that shows `view` and whose reader has `scopes`. Requires `pages`."""
        ...


@dataclass(frozen=True)
class WithinReach(Feed):
    """A feed restricted to the reach of a key (R-SEC-11). Readers with the same reach share one read."""

    feed: Feed
    reach: Reach

    @property
    def items(self) -> str:  # type: ignore[override]  # it is the feed's
        """Return the feed's attribute."""
        return self.feed.items

    @property
    def states(self) -> bool:  # type: ignore[override]  # it is the feed's
        """Return the feed's attribute."""
        return self.feed.states

    pages = False
    views = ("",)

    def cursor(self, given: object) -> Cursor:
        """Delegate to the feed."""
        return self.feed.cursor(given)

    def group(self, tenant_id: UUID, subject: UUID) -> str:
        """Delegate to the feed."""
        return self.feed.group(tenant_id, subject)

    def find(self, tenant_id: UUID, subject: UUID) -> bool:
        """Return whether the feed finds the subject among the runs that `reach` allows."""
        with restrict_to_reach(self.reach):
            return self.feed.find(tenant_id, subject)

    def read(self, tenant_id: UUID, subject: UUID, after: Cursor) -> Batch:
        """Return the part of the batch that belongs to the runs that `reach` allows."""
        with restrict_to_reach(self.reach):
            return self.feed.read(tenant_id, subject, after)

    def render(
        self, tenant_id: UUID, subject: UUID, after: Cursor, scopes: tuple[str, ...], view: str = ""
    ) -> Fragments:
        """Raise NotImplementedError: a key follows no page."""
        raise NotImplementedError


def feed_within(feed: Feed, reach: Reach | None) -> Feed:
    """Return the feed restricted to a reach; the feed itself if there is none."""
    return feed if reach is None else WithinReach(feed, reach)


def extract_sequence(cursor: Cursor) -> int:
    """Return the sequence number in a run's cursor."""
    return int(str(cursor).partition(".")[0] or 0)


def parse_run_cursor(given: object) -> int:
    """Parse a run's cursor: a whole number from 0; None and "" are the beginning.

    Raises: ValueError.
    """
    if given is None or given == "":
        return 0
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise ValueError("a cursor is a whole number")
    if isinstance(given, str) and not (given.isascii() and given.isdigit() and len(given) <= 16):
        raise ValueError("a cursor is a whole number")
    found = int(given)
    if not 0 <= found <= 2**53:
        raise ValueError("a cursor is a whole number from 0 on")
    return found


Row = TypeVar("Row")
StateFragments = Callable[[UUID, str, tuple[str, ...], str], Fragments]


class StateFeed(Feed):
    """The base of a tenant's lists, whose items are states after a change. Its subject is the tenant.

    `changed` reads the rows that changed after a cursor, the next cursor and whether there are more (in the
    tenant's context); `shown` is a row as JSON; `fragments` renders the same for a page, None if there is no
    page.
    """

    states = True

    def __init__(
        self,
        items: str,
        changed: Callable[[str], tuple[Sequence[Row], str, bool]],
        shown: Callable[[Row], Mapping[str, Any]],
        fragments: StateFragments | None = None,
        views: tuple[str, ...] = ("",),
    ) -> None:
        self.items, self.pages, self.views = items, fragments is not None, views
        self._changed, self._shown, self._fragments = changed, shown, fragments

    def cursor(self, given: object) -> Cursor:
        """Parse a cursor of a list.

        Raises: ValueError.
        """
        return mark_text(given)

    def group(self, tenant_id: UUID, subject: UUID) -> str:
        """Return the channel group of the tenant's lists."""
        return group_of_tenant(tenant_id)

    def find(self, tenant_id: UUID, subject: UUID) -> bool:
        """Return whether the list is the tenant's own."""
        return tenant_id == subject

    def read(self, tenant_id: UUID, subject: UUID, after: Cursor) -> Batch:
        """Return the rows that changed."""
        with tenant_transaction(tenant_id):
            rows, seq, more = self._changed(str(after))
            items = tuple(Item(0, orjson.dumps(self._shown(row))) for row in rows)
        return Batch(seq, items, more=more)

    def render(
        self, tenant_id: UUID, subject: UUID, after: Cursor, scopes: tuple[str, ...], view: str = ""
    ) -> Fragments:
        """Return the fragments for the list's page."""
        assert self._fragments is not None  # noqa: S101 - not called where there are no pages
        return self._fragments(tenant_id, str(after), scopes, view)
