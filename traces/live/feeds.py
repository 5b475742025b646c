"""What can be followed: the port between the reader of a process and the floors that know what there is.

Every feed has its scripted twin in `traces.live.scripted_feed`.
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
    """One thing of a feed as JSON. `seq` is its place; all items of a list have the place 0."""

    seq: int
    body: bytes


class Batch(NamedTuple):
    """What a feed has after a cursor.

    `seq` is the cursor after it, `beside` further fields of the frame as JSON (the progress envelope), `more`
    says that there is more already, `end` is the last word (JSON) of something that has ended and was read to
    its end.
    """

    seq: Cursor
    items: tuple[Item, ...]
    beside: Mapping[str, bytes] = {}
    more: bool = False
    end: bytes | None = None


class Fragments(NamedTuple):
    """What a page applies to come from one cursor to another.

    `html` is a string of elements: one with `data-append="<id>"` has those of its children appended to the
    element `<id>` whose own id is not there yet; any other replaces the element of the same id. `more`: there
    is more already after `seq`.
    """

    after: Cursor
    seq: Cursor
    html: str
    more: bool = False


class Feed(Protocol):
    """Something to follow. All methods block and run in a reader's thread, outside any transaction."""

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
        """The cursor a client gave; None and "" are the beginning. Raises ValueError for what is none."""
        ...

    def view(self, given: object, reader: UUID) -> str:
        """The part of the page that a principal asks for, as `render` takes it: whoever gets the same is
        served by one drawing. Raises ValueError for what is none."""
        asked = str(given or self.views[0])
        asked = self.former.get(asked, asked)
        if asked not in self.views:
            raise ValueError("the view is no part of the page")
        return asked

    def marked(self, text: str) -> str:
        """A text from outside as a page shows it where no markup can stand."""
        return text

    def group(self, tenant_id: UUID, subject: UUID) -> str:
        """The channel group whose hints say that there may be news."""
        ...

    def find(self, tenant_id: UUID, subject: UUID) -> bool:
        """Whether the tenant has it; another tenant's is not there."""
        ...

    def read(self, tenant_id: UUID, subject: UUID, after: Cursor) -> Batch:
        """What came after a cursor, oldest first, a bounded number."""
        ...

    def render(
        self, tenant_id: UUID, subject: UUID, after: Cursor, scopes: tuple[str, ...], view: str = ""
    ) -> Fragments:
        """The same for a page that shows `view` and whose reader holds `scopes`. Not called without
        `pages`."""
        ...


@dataclass(frozen=True)
class WithinReach(Feed):
    """A feed as it is within the reach of a key (R-SEC-11). Those who share one are served by one reading."""

    feed: Feed
    reach: Reach

    @property
    def items(self) -> str:  # type: ignore[override]  # it is the feed's
        """The feed's."""
        return self.feed.items

    @property
    def states(self) -> bool:  # type: ignore[override]  # it is the feed's
        """The feed's."""
        return self.feed.states

    pages = False
    views = ("",)

    def cursor(self, given: object) -> Cursor:
        """The feed's."""
        return self.feed.cursor(given)

    def group(self, tenant_id: UUID, subject: UUID) -> str:
        """The feed's."""
        return self.feed.group(tenant_id, subject)

    def find(self, tenant_id: UUID, subject: UUID) -> bool:
        """Whether it is within the reach."""
        with restrict_to_reach(self.reach):
            return self.feed.find(tenant_id, subject)

    def read(self, tenant_id: UUID, subject: UUID, after: Cursor) -> Batch:
        """What of it is within the reach."""
        with restrict_to_reach(self.reach):
            return self.feed.read(tenant_id, subject, after)

    def render(
        self, tenant_id: UUID, subject: UUID, after: Cursor, scopes: tuple[str, ...], view: str = ""
    ) -> Fragments:
        """A key follows no page."""
        raise NotImplementedError


def feed_within(feed: Feed, reach: Reach | None) -> Feed:
    """The feed as somebody of this reach follows it."""
    return feed if reach is None else WithinReach(feed, reach)


def extract_sequence(cursor: Cursor) -> int:
    """The sequence number in a run's cursor."""
    return int(str(cursor).partition(".")[0] or 0)


def parse_run_cursor(given: object) -> int:
    """A run's cursor: a whole number from 0 on, the beginning for None and "". Raises ValueError."""
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
    """The base of a tenant's lists: things as they stand after a change. Its subject is the tenant.

    `changed` reads which changed after a mark, the cursor after them and whether there are more (inside the
    tenant's context); `shown` is one of them as JSON; `fragments` draws the same for a page, None where there
    is no page.
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
        """A mark's text. Raises ValueError."""
        return mark_text(given)

    def group(self, tenant_id: UUID, subject: UUID) -> str:
        """The tenant's."""
        return group_of_tenant(tenant_id)

    def find(self, tenant_id: UUID, subject: UUID) -> bool:
        """Whether it is the tenant's own list."""
        return tenant_id == subject

    def read(self, tenant_id: UUID, subject: UUID, after: Cursor) -> Batch:
        """The rows that changed."""
        with tenant_transaction(tenant_id):
            rows, seq, more = self._changed(str(after))
            items = tuple(Item(0, orjson.dumps(self._shown(row))) for row in rows)
        return Batch(seq, items, more=more)

    def render(
        self, tenant_id: UUID, subject: UUID, after: Cursor, scopes: tuple[str, ...], view: str = ""
    ) -> Fragments:
        """What the list's page applies."""
        assert self._fragments is not None  # noqa: S101 - not called where there are no pages
        return self._fragments(tenant_id, str(after), scopes, view)
