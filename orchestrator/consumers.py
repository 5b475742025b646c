"""What of the orchestrator can be followed: a run, and the tenant's runs (R-API-5, R-SESS-11)."""

from collections.abc import Callable
from uuid import UUID

import orjson

from orchestrator.api import shown
from orchestrator.core.terminal import TERMINAL_STATUSES, Status
from orchestrator.models import Run
from orchestrator.queries.changes import changed_runs
from orchestrator.queries.progress import progress_at
from tenancy.context import tenant
from tenancy.marks import mark_text
from traces.live.feeds import Batch, Cursor, Feed, Fragments, Item, sequence
from traces.live.publishing import group_of, group_of_tenant
from traces.queries import events_after

A_READ = 200
RunFragments = Callable[[UUID, UUID, int, tuple[str, ...]], Fragments]
ListFragments = Callable[[UUID, str], Fragments]


class RunFeed(Feed):
    """A run's events under their sequence numbers, with the progress envelope of the newest commit."""

    items = "events"
    states = False

    def __init__(self, fragments: RunFragments | None = None) -> None:
        self._fragments = fragments
        self.pages = fragments is not None

    def cursor(self, given: object) -> Cursor:
        """A sequence number. Raises ValueError."""
        return sequence(given)

    def group(self, tenant_id: UUID, subject: UUID) -> str:
        """The run's."""
        return group_of(subject)

    def find(self, tenant_id: UUID, subject: UUID) -> bool:
        """Whether the tenant has this run."""
        with tenant(tenant_id):
            return Run.objects.filter(id=subject).exists()

    def read(self, tenant_id: UUID, subject: UUID, after: Cursor) -> Batch:
        """The events after a sequence number up to the run's head as it was read, and where that stands.

        A cursor beyond the head (of a store that was set back) is set to the head.
        """
        with tenant(tenant_id):
            run = Run.objects.get(id=subject)
            if run.event_seq <= int(after):
                return Batch(run.event_seq, (), end=_end(run))
            found = [e for e in events_after(run.id, int(after), A_READ) if e.seq <= run.event_seq]
            items = tuple(Item(e.seq, orjson.dumps(shown.event(e))) for e in found)
            seq = items[-1].seq if items else int(after)
            if seq < run.event_seq:
                # The envelope is that of the head: it comes with the events that lead to it.
                return Batch(seq, items, more=True)
            progress = progress_at(run, found[-1].at)
        if progress is None:
            # The run went on while this was read: its envelope comes with the events that follow.
            return Batch(seq, items, more=True)
        return Batch(seq, items, {"progress": orjson.dumps(progress.model_dump(mode="json"))}, end=_end(run))

    def render(self, tenant_id: UUID, subject: UUID, after: Cursor, scopes: tuple[str, ...]) -> Fragments:
        """What the run's page applies."""
        assert self._fragments is not None
        return self._fragments(tenant_id, subject, int(after), scopes)


class RunsFeed(Feed):
    """The tenant's runs, each as it stands after a change. Its subject is the tenant."""

    items = "runs"
    states = True

    def __init__(self, fragments: ListFragments | None = None) -> None:
        self._fragments = fragments
        self.pages = fragments is not None

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
        with tenant(tenant_id):
            found = changed_runs(str(after))
            items = tuple(Item(0, orjson.dumps(shown.row(run))) for run in found.runs)
        return Batch(found.seq, items, more=found.more)

    def render(self, tenant_id: UUID, subject: UUID, after: Cursor, scopes: tuple[str, ...]) -> Fragments:
        """What the list's page applies."""
        assert self._fragments is not None
        return self._fragments(tenant_id, str(after))


def _end(run: Run) -> bytes | None:
    """The last word of a run that has ended."""
    if Status(run.status) not in TERMINAL_STATUSES:
        return None
    return orjson.dumps({"status": run.status, "terminal_code": run.terminal_code or None})
