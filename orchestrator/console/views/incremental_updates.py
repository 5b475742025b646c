"""Updates that bring each tab of a run's page from one event to a later one.

A list tab gets its new rows; a state tab is replaced as a whole. No update depends on the viewer.

All functions run in the tenant's context.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from orchestrator.console.queries.operator_actions import acts_of
from orchestrator.console.queries.run_contents import ENTRIES, facts_of, ledger_of, said_after
from orchestrator.console.queries.timeline import load_timeline_changes
from orchestrator.console.views.tabs import RAW, Context, ahead_of, book_of, chain_of, lines_of, whole_of
from orchestrator.core.domain.run_state import RunState
from orchestrator.knowledge.views.files import files_of
from orchestrator.runs.models.run import Run
from orchestrator.spending.queries.business_cost import business_of
from traces.models import Event

ACTS: Final = 40
"""The newest acts are drawn anew with each change: a wish may be taken up meanwhile."""


class FragmentUpdate(NamedTuple):
    """The template context of a tab's fragment, its last event, and whether more events are available."""

    context: Context
    seq: int
    more: bool = False


def _load_timeline_update(run: Run, _state: RunState, after: int) -> FragmentUpdate:
    news = load_timeline_changes(run.id, after, run.event_seq)
    return FragmentUpdate({"news": news}, news.seq, news.more)


def _load_plan_update(run: Run, state: RunState, _after: int) -> FragmentUpdate:
    return FragmentUpdate(ahead_of(run, state), run.event_seq)


def _load_messages_update(run: Run, _state: RunState, after: int) -> FragmentUpdate:
    messages, seq, more = said_after(run.id, after, run.event_seq)
    return FragmentUpdate({"messages": messages}, seq, more)


def _load_facts_update(run: Run, state: RunState, after: int) -> FragmentUpdate:
    return FragmentUpdate({"facts": facts_of(run.id, state, after)}, run.event_seq)


def _load_ledger_update(run: Run, _state: RunState, after: int) -> FragmentUpdate:
    book = ledger_of(run.id, _find_event_time(run.id, after))
    # More than a page of entries arrived since the last update: the page is replaced as a whole.
    more = {"anew": len(book.entries) >= ENTRIES, "business": business_of(run)}
    return FragmentUpdate(book_of(run, book) | more, run.event_seq)


def _load_audit_update(run: Run, _state: RunState, _after: int) -> FragmentUpdate:
    return FragmentUpdate({"acts": acts_of(run)[-ACTS:], **chain_of(run)}, run.event_seq)


def _load_raw_update(run: Run, _state: RunState, after: int) -> FragmentUpdate:
    seq = min(run.event_seq, after + RAW)
    context: dict[str, Any] = {"lines": lines_of(run, after, seq)}
    if seq == run.event_seq:
        context |= whole_of(run)
    return FragmentUpdate(context, seq, seq < run.event_seq)


def _load_files_update(run: Run, _state: RunState, _after: int) -> FragmentUpdate:
    return FragmentUpdate(files_of(run), run.event_seq)


def _build_head_update(run: Run, _state: RunState, _after: int) -> FragmentUpdate:
    return FragmentUpdate({}, run.event_seq)


def _find_event_time(run_id: UUID, seq: int) -> datetime | None:
    return Event.objects.filter(run_id=run_id, seq=seq).values_list("at", flat=True).first()


NEWS: Final[Mapping[str, Callable[[Run, RunState, int], FragmentUpdate]]] = {
    "timeline": _load_timeline_update,
    "plan": _load_plan_update,
    "messages": _load_messages_update,
    "facts": _load_facts_update,
    "ledger": _load_ledger_update,
    "audit": _load_audit_update,
    "raw": _load_raw_update,
    "files": _load_files_update,
    "head": _build_head_update,
}
RUN_VIEWS: Final = tuple(NEWS)
