"""The state of a run: its sentence, its dials, and its changes so far (R-UI-3). Call it in the tenant's
context.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import orjson

from approvals.core.lifecycle import AGREEING
from approvals.models import Request
from approvals.queries import decisions_of
from approvals.queries.countable_votes import counting_votes
from budgets.core.dimension import Dimension
from budgets.queries import get_usage_lines
from orchestrator.console.queries.timeline import FOLDED, all_told
from orchestrator.console.queries.tripped_breakers import stopped_by_ceiling
from orchestrator.core.common.run_status import Status, TerminalCode
from orchestrator.core.domain.manifest import Pins
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.readmodel.status_summary import (
    AwaitedRequest,
    Facts,
    StatusSummary,
    summarize_run_status,
)
from orchestrator.core.readmodel.timeline import Mood, Row, fold_events
from orchestrator.runs.models.run import ManifestRow, Run
from orchestrator.runs.queries.run_list import Meter
from orchestrator.runs.queries.state_loader import pins_of
from traces.models import Event

DIALS: Final = (
    (Dimension.COST_USD, "Cost", "usd"),
    (Dimension.MODEL_TURNS, "Model calls", ""),
    (Dimension.TOOL_CALLS, "Tool calls", ""),
    (Dimension.WALL_CLOCK_SECONDS, "Working time", "s"),
)
CHANGED = """position('"mutating":true'::bytea IN body) > 0"""
EFFECTS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUsage:
    """One limit of a run with its used and reserved amounts."""

    label: str
    unit: str
    meter: Meter


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangingCall:
    """A call that changed something, or may have.

    The fields are its timeline row, its reversibility, and the tool's sentence about its effects.
    """

    row: Row
    reversibility: str
    effects: str


def list_run_limits(run_id: UUID) -> tuple[LimitUsage, ...]:
    """Return the limits that a page shows, from the ledger's own lines (R-BUDGET-3)."""
    lines = get_usage_lines(run_id)
    return tuple(
        LimitUsage(
            label=label, unit=unit, meter=Meter(used=line.used, reserved=line.reserved, limit=line.limit)
        )
        for dimension, label, unit in DIALS
        if (line := lines.get(dimension)) is not None
    )


def standing_of(run: Run, state: RunState) -> StatusSummary:
    """Return the sentence about the run's current state."""
    status = Status(run.status)
    return summarize_run_status(
        Facts(
            status=status,
            position=run.position,
            code=TerminalCode(run.terminal_code) if run.terminal_code else None,
            reason=_get_reason(run, state, status),
            since=_get_status_since(run, status),
            awaited=_find_awaited_request(run.id) if state.gates else None,
            deadline=_find_deadline(run.id) if run.finished_at is None else None,
            in_flight=_in_flight(state),
            away=state.away,
            halting=state.halting.interrupt.value if state.halting is not None else "",
        )
    )


def _get_reason(run: Run, state: RunState, status: Status) -> str:
    said = run.reason or state.reason or _paused_for(run, status)
    if run.finished_at is not None and said == Dimension.COST_USD.value:
        return stopped_by_ceiling(run) or said
    return said


def _get_status_since(run: Run, status: Status) -> datetime | None:
    if run.finished_at is not None:
        return run.finished_at
    if status is Status.QUEUED:
        return run.created_at
    kinds = ("run_paused",) if status is Status.PAUSED else ("run_resumed", "run_started")
    newest = Event.objects.filter(run_id=run.id, kind__in=kinds).order_by("-seq")
    return newest.values_list("at", flat=True).first() or run.started_at


def _paused_for(run: Run, status: Status) -> str:
    if status is not Status.PAUSED:
        return ""
    body = (
        Event.objects.filter(run_id=run.id, kind="run_paused").order_by("-seq").values_list("body", flat=True)
    )
    newest = body.first()
    return str(orjson.loads(bytes(newest)).get("reason", "")) if newest is not None else ""


def _find_awaited_request(run_id: UUID) -> AwaitedRequest | None:
    request = Request.objects.filter(run_id=run_id, status="pending").order_by("expires_at").first()
    if request is None:
        return None
    agreed = 0
    if request.quorum > 1:
        votes = counting_votes(request, decisions_of(request.id))
        agreed = sum(vote.kind in AGREEING for vote in votes)
    return AwaitedRequest(
        kind=request.kind, tool=request.tool, queue=request.queue, quorum=request.quorum, agreed=agreed,
        since=request.created_at, until=request.expires_at,
    )  # fmt: skip


def _find_deadline(run_id: UUID) -> datetime | None:
    text = load_manifest_body(run_id)["goal"].get("deadline")
    return datetime.fromisoformat(text) if text else None


def load_manifest_body(run_id: UUID) -> dict[str, Any]:
    """Return the run's manifest, without its pins."""
    body: dict[str, Any] = orjson.loads(
        bytes(ManifestRow.objects.values_list("body", flat=True).get(id=run_id))
    )
    return body


def load_run_pins(run: Run) -> Pins:
    """Return the versions that a run is pinned to."""
    return pins_of(run.tenant_id, ManifestRow.objects.values_list("pins_digest", flat=True).get(id=run.id))


def _in_flight(state: RunState) -> tuple[str, ...]:
    tools = {call.id: call.tool for call in (*state.queue, *state.batch)}
    said = (
        "asking a model" if p.kind == "call_model" else f"calling {tools.get(p.call or '', 'a tool')}"
        for p in state.pending.values()
    )  # fmt: skip
    return tuple(sorted(set(said)))


def effects_done(run: Run) -> tuple[ChangingCall, ...]:
    """Return the changes that the run has made so far, newest last: a cancel does not undo them."""
    events = Event.objects.filter(run_id=run.id)
    sent = events.filter(kind="call_attempted").extra(where=[CHANGED])  # noqa: S610 - our own words
    if not sent.exists():
        return ()
    held = all_told(events.filter(kind__in=FOLDED["tools"]).order_by("-seq")[:2_000])[::-1]
    rows = [row for row in fold_events(held) if _is_mutating_row(row)]
    by_name: Mapping[str, Any] = load_run_pins(run).by_name
    return tuple(
        ChangingCall(row=row, reversibility=tool.reversibility.value, effects=tool.side_effects)
        for row in rows[-EFFECTS:]
        if (tool := by_name.get(row.name)) is not None
    )


def _is_mutating_row(row: Row) -> bool:
    sent = any(one.kind == "call_attempted" and one.said.get("mutating") for one in row.events)
    return row.word == "in doubt" or (sent and row.mood is not Mood.PROBLEM)
