"""The checkpoints of a run: records at which a retry may begin, and reasons against others (R-SESS-9).

Call it inside the tenant's context.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final, NamedTuple

import orjson

from orchestrator.core.admission.checkpoint_retry import (
    KEPT,
    SENTENCES,
    UnfitReason,
    checkpoint_of,
    describe_next_action,
    otherwise_since,
    with_later_refusals,
)
from orchestrator.core.admission.errors import (
    ChangedSince,
    EffectInDoubt,
    LearntLate,
    NoCheckpoint,
    RetriedAlready,
    RunNotOver,
    RunSucceeded,
    StillRecording,
)
from orchestrator.core.common.errors import OrchestratorError
from orchestrator.core.common.run_status import TERMINAL_STATUSES, Status, TerminalCode
from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.engine.late_reconciliation import DoubtfulChange, settled_calls
from orchestrator.decisions.queries.in_doubt_changes import doubts_of
from orchestrator.runs.models.run import Intent, Run
from orchestrator.runs.queries.pending_signals import has_untaken
from orchestrator.runs.queries.retry_lineage import newest_of, retried_as
from orchestrator.runs.queries.runs import state_now
from orchestrator.runs.queries.state_loader import graph_of
from traces.core.state_patch import apply_patch
from traces.models import Record
from traces.queries import recall_at

WINDOW: Final = 200
# A page stops after this many records, and the next page continues from there.
LOOKED_AT: Final = 1_000
# The state members that make a checkpoint: a record that changes none of them is not a checkpoint of its
# own.
TOLD: Final = (*KEPT, "facts", "echoes", "deeds")
# State members that are unset while nothing is open, as stored: they rule out most records.
OPEN: Final = ("outcome", "interrupt", "halting", "unwinding", "frozen", "gates", "batch", "paused")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A record at which a retry may begin.

    `refused` is the reason why it may not begin there now, None where it may. `next` describes the first
    action of the retry.
    """

    record: int
    at: datetime
    position: str
    next: str
    refused: OrchestratorError | None


class Page(NamedTuple):
    """Checkpoints, newest first; `below` is where the next page begins, None for the last page."""

    found: list[Checkpoint]
    below: int | None


class EndedRun:
    """An ended run, and the records of it that a retry may begin at."""

    def __init__(self, run: Run, graph: CompiledGraph | None = None) -> None:
        self.run = run
        self.graph = graph or graph_of(run.tenant_id, run.workflow_version_id)

    @cached_property
    def changes(self) -> list[tuple[int, str]]:
        """Every change that was decided, with the number of its record, whatever its result.

        Changes that were reconciled after the end are left out, because a retry knows them wherever it
        begins.
        """
        found = Intent.objects.filter(run_id=self.run.id, mutating=True).order_by("record")
        known = settled_calls(self.end)
        rows = found.values_list("record", "tool", "body")
        return [(at, tool) for at, tool, body in rows if orjson.loads(bytes(body))["call"] not in known]

    @cached_property
    def end(self) -> RunState:
        """The state in which the run ended."""
        return state_now(self.run.id)

    @cached_property
    def doubts(self) -> list[DoubtfulChange]:
        """The changes that a person has to reconcile before a retry."""
        return [one for one in doubts_of(self.run, self.end) if one.blocks]

    @cached_property
    def over(self) -> OrchestratorError | None:
        """The reason why the run cannot be retried at all; None where it can."""
        if Status(self.run.status) not in TERMINAL_STATUSES:
            return RunNotOver(status=self.run.status)
        if self.run.terminal_code == TerminalCode.SUCCESS.value:
            return RunSucceeded()
        if retried_as(self.run.id) is not None:
            return RetriedAlready(newest=str(newest_of(self.run)))
        if has_untaken(self.run.id):
            return StillRecording()
        return self._doubtful()

    def _doubtful(self) -> OrchestratorError | None:
        """Return the refusal while changes are in doubt; None without any.

        It holds for every starting point, before or after such a change, because the state would not
        contain the change.
        """
        if not self.doubts:
            return None
        late = [one for one in self.doubts if one.why == "learnt_late"]
        # For changes that were reported too late, no question was asked before.
        refused = LearntLate if len(late) == len(self.doubts) else EffectInDoubt
        tools = sorted({one.change.tool for one in self.doubts})
        effects = [one.change.effect for one in self.doubts]
        return refused(tools=", ".join(tools), effects=effects, see=f"/api/v1/runs/{self.run.id}/effects")

    def find_refusal(self, then: RunState) -> OrchestratorError | None:
        """Return the reason why no retry may begin at a checkpoint; None where it may.

        A change made after the checkpoint would be made twice, or its result now differs from the one known
        then.
        """
        if self.over is not None:
            return self.over
        sent = {tool for record, tool in self.changes if record > then.version}
        learnt = settled_calls(self.end) - then.deeds.keys()
        end = {call: deed for call, deed in self.end.deeds.items() if call not in learnt}
        tools = sorted({*sent, *otherwise_since(then.deeds, end)})
        return ChangedSince(tools=", ".join(tools)) if tools else None

    def state_at(self, number: int) -> RunState:
        """Return the state after a record.

        Raises: NoCheckpoint for a record that the run does not have.
        """
        if not 0 <= number <= self.run.record_number:
            raise NoCheckpoint(why=f"the run has no record {number}")
        found = recall_at(self.run.id, number)
        plain = orjson.loads(found.state)
        for patch in found.patches:
            plain = apply_patch(plain, patch)
        return RunState.model_validate(plain)

    def checkpoint(self, number: int | None) -> tuple[RunState, RunState]:
        """Return the state after a record, and the state that a retry would begin with.

        Without a record the newest checkpoint is used.

        Raises: NoCheckpoint, ChangedSince, and the error in `over`.
        """
        if self.over is not None:
            raise self.over
        if number is None:
            number = self._newest()
        then = self.state_at(number)
        known = checkpoint_of(self.graph, then)
        if isinstance(known, UnfitReason):
            raise NoCheckpoint(why=SENTENCES[known])
        if (refused := self.find_refusal(then)) is not None:
            raise refused
        return then, with_later_refusals(known, self.end)

    def page(self, below: int | None, limit: int) -> Page:
        """Return up to `limit` checkpoints below a record, newest first."""
        top = self.run.record_number + 1 if below is None else min(below, self.run.record_number + 1)
        lowest, found = max(0, top - LOOKED_AT), list[Checkpoint]()
        while top > lowest and len(found) <= limit:
            low = max(lowest, top - WINDOW)
            found.extend(reversed(list(self._iterate_checkpoints(low, top))))
            top = low
        if len(found) > limit:
            return Page(found[:limit], found[limit - 1].record)
        return Page(found, top if top > 0 else None)

    def _newest(self) -> int:
        below: int | None = None
        while True:
            page = self.page(below, 1)
            if page.found:
                return page.found[0].record
            if page.below is None:
                raise NoCheckpoint(why="the run has no checkpoint")
            below = page.below

    def _iterate_checkpoints(self, low: int, top: int) -> Iterator[Checkpoint]:
        """Yield the checkpoints from record `low` up to, but not including, `top`, oldest first."""
        times = dict(
            Record.objects.filter(run_id=self.run.id, number__gte=low, number__lt=top).values_list(
                "number", "at"
            )
        )
        before: list[Any] | None = None
        # The record before `low` shows whether the first one adds anything.
        for plain in self._states(max(0, low - 1), top):
            told = [plain.get(name) for name in TOLD]
            if told == before or any(plain.get(name) for name in OPEN):
                continue
            state = RunState.model_validate(plain)
            if not isinstance(checkpoint_of(self.graph, state), RunState):
                continue
            before = told
            if state.version >= low:
                yield Checkpoint(
                    record=state.version, at=times[state.version], position=state.position,
                    next=describe_next_action(self.graph, state), refused=self.find_refusal(state),
                )  # fmt: skip

    def _states(self, low: int, top: int) -> Iterator[Mapping[str, Any]]:
        found = recall_at(self.run.id, low)
        plain = orjson.loads(found.state)
        for patch in found.patches:
            plain = apply_patch(plain, patch)
        yield plain
        rows = Record.objects.filter(run_id=self.run.id, number__gt=low, number__lt=top).order_by("number")
        for body in rows.values_list("body", flat=True):
            plain = apply_patch(plain, orjson.loads(bytes(body))["patch"])
            yield plain
