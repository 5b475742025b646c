"""An in-memory feed with scripted events: a test double and a baseline for benchmarks."""

from threading import Lock
from uuid import UUID

from traces.live.feeds import Batch, Cursor, Feed, Fragments, Item, parse_run_cursor
from traces.live.hints import group_of

A_READ = 500


class ScriptedFeed(Feed):
    """Events in memory, one list per subject. A subject does not exist before its first event is appended.

    `reads` counts the reads. `failing` makes each read raise.
    """

    def __init__(self, *, states: bool = False) -> None:
        self.items = "events"
        self.states = states
        self.pages = True
        self.views = ("", "other")
        self.reads = 0
        self.renders = 0
        self.failing = False
        self._lock = Lock()
        self._said: dict[tuple[UUID, UUID], list[bytes]] = {}
        self._ended: set[UUID] = set()

    def append(self, tenant_id: UUID, subject: UUID, *bodies: bytes) -> int:
        """Add events (JSON) and return the sequence number of the last one."""
        with self._lock:
            said = self._said.setdefault((tenant_id, subject), [])
            said.extend(bodies)
            return len(said)

    def said(self, tenant_id: UUID, subject: UUID) -> tuple[bytes, ...]:
        """Return all events appended so far."""
        with self._lock:
            return tuple(self._said.get((tenant_id, subject), ()))

    def end(self, subject: UUID) -> None:
        """Mark the subject as ended: no more events will come."""
        self._ended.add(subject)

    def cursor(self, given: object) -> Cursor:
        """Parse a cursor: a whole number from 0 on."""
        return parse_run_cursor(given)

    def group(self, tenant_id: UUID, subject: UUID) -> str:
        """Return the channel group of the run with this id."""
        return group_of(subject)

    def find(self, tenant_id: UUID, subject: UUID) -> bool:
        """Return whether any events were appended to the subject."""
        return (tenant_id, subject) in self._said

    def read(self, tenant_id: UUID, subject: UUID, after: Cursor) -> Batch:
        """Read up to 500 events.

        Raises: ConnectionError while `failing` is set.
        """
        if self.failing:
            raise ConnectionError
        self.reads += 1
        with self._lock:
            said = self._said[tenant_id, subject]
            start = int(after)
            found = said[start : start + A_READ]
            items = tuple(Item(start + place, body) for place, body in enumerate(found, 1))
            more = start + len(found) < len(said)
        seq = items[-1].seq if items else start
        end = b'{"status":"completed"}' if subject in self._ended and not more else None
        return Batch(seq, items, {"progress": b'{"progress_id":%d}' % seq}, more, end)

    def render(
        self, tenant_id: UUID, subject: UUID, after: Cursor, scopes: tuple[str, ...], view: str = ""
    ) -> Fragments:
        """Render one `<li>` per event, appended to `#timeline`, and a `<p id="count">`."""
        batch = self.read(tenant_id, subject, after)
        self.renders += 1
        rows = "".join(f'<li id="e{item.seq}">{item.body.decode()}</li>' for item in batch.items)
        html = f'<ol data-append="timeline">{rows}</ol><p id="count">{batch.seq}</p>'
        return Fragments(after, batch.seq, html, batch.more)
