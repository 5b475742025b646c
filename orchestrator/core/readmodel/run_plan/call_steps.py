"""The calls of a turn: parallel calls, calls that wait for others, and what the front call waits for."""

from typing import NamedTuple

from orchestrator.core.domain.manifest import Pins
from orchestrator.core.domain.run_state import Call, RunState
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.readmodel.run_plan.plan_types import For, StepStanding, TracedCall, Wait
from orchestrator.core.workflow.edge_guards import MODEL

S = StepStanding
GATES: dict[str, For] = {"action": "decision", "reconciliation": "verdict", "question": "answer"}
STATUSES = {"ok": S.DONE, "error": S.FAILED, "circuit_open": S.FAILED}
"""What the result of a call says; every other status is a refusal."""


class PlacedCall(NamedTuple):
    """A call with its standing, what it waits for, and the ids of the calls that it comes after."""

    call: Call
    standing: StepStanding
    wait: Wait | None = None
    after: tuple[str, ...] = ()


def standing_of(status: str) -> StepStanding:
    """Return the standing of a call with this result status."""
    return STATUSES.get(status, S.REFUSED)


def list_pending_calls(state: RunState, pins: Pins) -> list[PlacedCall]:
    """Return the calls without a result, in order: the current batch, then the queue in processing order."""
    found = [_on_its_way(state, call) for call in state.batch]
    before = tuple(call.id for call in state.batch)
    for group in group_queued_calls(state.queue, pins):
        found.extend(_place_queued_group(state, group, before))
        before = tuple(call.id for call in group)
    return found


def carried_calls(state: RunState) -> tuple[TracedCall, ...]:
    """Return the calls that a retry begins with, from its first state.

    The previous run requested them, so no event of the retry does.
    """
    return tuple(
        TracedCall(call.id, call.tool, MODEL if call.by == MODEL else "node") for call in state.queue
    )


def last_of(state: RunState, pins: Pins) -> tuple[str, ...]:
    """Return the ids of the calls that are taken up last; the next step waits for them."""
    groups = group_queued_calls(state.queue, pins) or [list(state.batch)]
    return tuple(call.id for call in groups[-1])


def group_queued_calls(queue: tuple[Call, ...], pins: Pins) -> list[list[Call]]:
    """Split the queue into the largest groups in which it can be processed.

    A group is a run of calls that only read and may run in parallel, or one other call. A call that people
    decide on first, or that repeats a call of the group, begins a new group.
    """
    groups: list[list[Call]] = []
    for call in queue:
        spec = pins.by_name.get(call.tool)
        joins = bool(groups) and _is_parallel_read(spec) and not (spec is not None and spec.needs_gate)
        if joins and _has_room(groups[-1], call, pins):
            groups[-1].append(call)
        else:
            groups.append([call])
    return groups


def _has_room(group: list[Call], call: Call, pins: Pins) -> bool:
    same = any((one.tool, one.raw) == (call.tool, call.raw) for one in group)
    full = len(group) >= pins.boundary.max_parallel_tool_calls
    return not same and not full and _is_parallel_read(pins.by_name.get(group[0].tool))


def _is_parallel_read(spec: ToolSpec | None) -> bool:
    """Return whether a tool only reads and may run in parallel, by the rule of check_tool."""
    return spec is not None and spec.parallel_safe and not spec.is_mutating


def _place_queued_group(state: RunState, group: list[Call], before: tuple[str, ...]) -> list[PlacedCall]:
    """Place a group of the queue; the other calls of the group wait if the front call waits."""
    if before:
        return [PlacedCall(call, S.BEHIND, after=before) for call in group]
    front, *beside = group
    wait = wait_of(state, front)
    if wait is None:
        return [PlacedCall(call, S.READY) for call in group]
    return [
        PlacedCall(front, S.WAITING, wait),
        *(PlacedCall(call, S.BEHIND, after=(front.id,)) for call in beside),
    ]


def _on_its_way(state: RunState, call: Call) -> PlacedCall:
    if any(held.call == call.id for held in state.pending.values()):
        return PlacedCall(call, S.UNDER_WAY)
    wait = wait_of(state, call)
    if call.rung == "in_doubt":
        return PlacedCall(call, S.IN_DOUBT, wait)
    if state.pending or call.rung in ("observed", "verified", "failed"):
        # The call has returned. Its result is stored when the other calls of its batch have returned too.
        return PlacedCall(call, S.UNDER_WAY)
    return PlacedCall(call, S.READY) if wait is None else PlacedCall(call, S.WAITING, wait)


def wait_of(state: RunState, call: Call | None = None) -> Wait | None:
    """Return what a call, or the node where the run is if `call` is None, waits for.

    None if nothing blocks it.
    """
    about = "" if call is None else call.id
    for request, gate in sorted(state.gates.items()):
        if gate.kind == "budget":
            return Wait(what="budget", request=request, until=gate.expires_at)
        if gate.call == about:
            return Wait(what=GATES[gate.kind], request=request, until=gate.expires_at)
    if state.paused:
        return Wait(what="resume")
    if state.timer is not None:
        # For a call at the front of the queue, only `core/calls/resource_locks.py` sets a timer.
        claimed = call is not None and call.rung == "intended"
        return Wait(what="claim" if claimed else "retry", until=state.timer)
    return None
