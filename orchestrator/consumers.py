"""The feeds of the orchestrator that a client can follow: a run, and the tenant's runs.

Spec: R-API-5, R-SESS-11.
"""

import re
from collections.abc import Callable, Mapping
from uuid import UUID

import orjson

from orchestrator.api import presenters
from orchestrator.console.queries.change_feed import changed_runs
from orchestrator.core.common.run_status import TERMINAL_STATUSES, Status
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.progress import progress_at
from tenancy.db.tenant_context import tenant_transaction
from traces.live.feeds import (
    Batch,
    Cursor,
    Feed,
    Fragments,
    Item,
    StateFeed,
    StateFragments,
    extract_sequence,
    parse_run_cursor,
)
from traces.live.hints import group_of
from traces.queries import events_after

A_READ = 200
BESIDE = re.compile(r"[0-9a-f]{1,32}")
RunFragments = Callable[[UUID, UUID, Cursor, tuple[str, ...], str], Fragments]


class RunFeed(Feed):
    """A run's events under their sequence numbers, with the progress envelope of the newest commit."""

    items = "events"
    states = False

    def __init__(
        self,
        fragments: RunFragments | None = None,
        views: tuple[str, ...] = ("",),
        marked: Callable[[str], str] = str,
        former: Mapping[str, str] = {},
    ) -> None:
        self._fragments, self._marked = fragments, marked
        self.pages, self.views, self.former = fragments is not None, views, former

    def cursor(self, given: object) -> Cursor:
        """Parse a sequence number; a page's cursor adds a suffix for the content shown next to the events.

        Raises: ValueError.
        """
        if not isinstance(given, str) or "." not in given:
            return parse_run_cursor(given)
        number, _, beside = given.partition(".")
        if not BESIDE.fullmatch(beside):
            raise ValueError("not a cursor of ours")
        return f"{parse_run_cursor(number)}.{beside}"

    def format_external_text(self, text: str) -> str:
        """Return the text with its hidden characters named, as on the page."""
        return self._marked(text)

    def group(self, tenant_id: UUID, subject: UUID) -> str:
        """Return the run's group."""
        return group_of(subject)

    def find(self, tenant_id: UUID, subject: UUID) -> bool:
        """Return whether the tenant has this run."""
        with tenant_transaction(tenant_id):
            return Run.objects.filter(id=subject).exists()

    def read(self, tenant_id: UUID, subject: UUID, after: Cursor) -> Batch:
        """Read the events after a sequence number up to the run's head, and the sequence number reached.

        A cursor beyond the head (of a store that was restored to an earlier state) is set to the head.
        """
        with tenant_transaction(tenant_id):
            run = Run.objects.get(id=subject)
            if run.event_seq <= extract_sequence(after):
                return Batch(run.event_seq, (), end=_encode_end_message(run))
            found = [
                e for e in events_after(run.id, extract_sequence(after), A_READ) if e.seq <= run.event_seq
            ]
            items = tuple(Item(e.seq, orjson.dumps(presenters.serialize_trace_event(e))) for e in found)
            seq = items[-1].seq if items else extract_sequence(after)
            if seq < run.event_seq:
                # The envelope belongs to the head, so it is sent with the last events before the head.
                return Batch(seq, items, more=True)
            progress = progress_at(run, found[-1].at)
        if progress is None:
            # The run went on during this read: its envelope is sent with the events that follow.
            return Batch(seq, items, more=True)
        return Batch(
            seq,
            items,
            {"progress": orjson.dumps(progress.model_dump(mode="json"))},
            end=_encode_end_message(run),
        )

    def render(
        self, tenant_id: UUID, subject: UUID, after: Cursor, scopes: tuple[str, ...], view: str = ""
    ) -> Fragments:
        """Render the fragments that the run's page applies."""
        assert self._fragments is not None
        return self._fragments(tenant_id, subject, after, scopes, view)


def runs_feed(fragments: StateFragments | None = None, views: tuple[str, ...] = ("",)) -> StateFeed:
    """Build the feed of the tenant's runs, each in its state after a change."""
    return StateFeed("runs", changed_runs, presenters.serialize_run_row, fragments, views)


class OverviewFeed(StateFeed):
    """The feed of the tenant's runs for an overview page, whose counts depend on the reader."""

    def __init__(self, fragments: StateFragments, view_of: Callable[[object, UUID], str]) -> None:
        super().__init__("runs", changed_runs, presenters.serialize_run_row, fragments)
        self._view_of = view_of

    def view(self, given: object, reader: UUID) -> str:
        """Return the reader's view.

        Raises: ValueError.
        """
        return self._view_of(given, reader)


def _encode_end_message(run: Run) -> bytes | None:
    """Encode the final message of a run that has ended, None for a run under way."""
    if Status(run.status) not in TERMINAL_STATUSES:
        return None
    return orjson.dumps({"status": run.status, "terminal_code": run.terminal_code or None})
