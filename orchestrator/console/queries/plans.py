"""The plan of a run: its steps with their dependencies, and its criteria (R-UI-3).

Call it in the tenant's context.
"""

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import orjson

from orchestrator.core.domain.run_state import RunState
from orchestrator.core.readmodel.run_plan import (
    CheckFinding,
    Move,
    RunPlan,
    TracedCall,
    build_run_plan,
    carried_calls,
)
from orchestrator.runs.models.run import ManifestRow, Run
from orchestrator.runs.queries.checkpoints import EndedRun
from orchestrator.runs.queries.runs import path_through
from orchestrator.runs.queries.state_loader import graph_of, manifest_of, pins_of
from traces.models import Event, Record

ANSWERS: Final = {"fact_committed": "ok", "failure_committed": "error", "call_not_run": ""}
CALLS: Final = ("model_replied", "call_requested", "call_attempted", *ANSWERS)
CHECKS: Final = ("output_verified", "completion_checked")
NEWEST: Final = 600
"""So many of the newest events about calls are looked at: a turn has far fewer. What was asked for before
them has no link to its row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan, the path that the run took, and the event that requested each call, by the call's id."""

    outlook: RunPlan
    path: tuple[str, ...]
    rows: dict[str, int]


def plan_of(run: Run, state: RunState) -> Plan:
    """Return the plan in its current state."""
    body, pinned = ManifestRow.objects.values_list("body", "pins_digest").get(id=run.id)
    manifest = manifest_of(bytes(body), pins_of(run.tenant_id, pinned))
    graph = graph_of(run.tenant_id, run.workflow_version_id)
    moves = moves_of(run.id)
    asked, rows = _load_requested_calls(run)
    return Plan(
        outlook=build_run_plan(graph, manifest, state, moves, asked, _find_newest_check(run.id)),
        path=path_through(move.target for move in moves),
        rows=rows,
    )


def moves_of(run_id: UUID) -> tuple[Move, ...]:
    """Return the run's transitions, in order."""
    records = Record.objects.filter(run_id=run_id).order_by("number")
    return tuple(Move(*move) for move in records.values_list("source", "outcome", "target"))


def _load_requested_calls(run: Run) -> tuple[tuple[TracedCall, ...], dict[str, int]]:
    """Return the calls since the newest reply, and the event number of each request that was read.

    Before the run's first reply the calls that a retry began with are included.
    """
    newest = Event.objects.filter(run_id=run.id, kind__in=CALLS).order_by("-seq")[:NEWEST]
    found = (
        {} if run.retry_of_id is None else {one.call: one for one in carried_calls(EndedRun(run).state_at(0))}
    )
    rows: dict[str, int] = {}
    for seq, kind, body in reversed(newest.values_list("seq", "kind", "body")):
        said: dict[str, Any] = orjson.loads(bytes(body))
        if kind == "model_replied":
            found = {}
        elif kind == "call_requested":
            found[said["call"]] = TracedCall(said["call"], said["tool"], said["by"])
            rows[said["call"]] = seq
        elif said["call"] in found:
            answer = ANSWERS.get(kind)
            more = {"sent": True} if answer is None else {"status": answer or str(said["status"])}
            found[said["call"]] = found[said["call"]]._replace(**more)
    return tuple(found.values()), rows


def _find_newest_check(run_id: UUID) -> CheckFinding | None:
    """Return the result of the newest check; None without one."""
    newest = Event.objects.filter(run_id=run_id, kind__in=CHECKS).order_by("-seq")
    body = newest.values_list("body", flat=True).first()
    if body is None:
        return None
    said: dict[str, Any] = orjson.loads(bytes(body))
    return CheckFinding(str(said.get("validator", "")), str(said.get("detail", "")))
