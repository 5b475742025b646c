"""check_tool: every call passes the eligibility chain before anything happens (phase 7).

The node looks at the front of the queue. A leading run of eligible read-only calls becomes one batch; any
other eligible call goes alone (R-GRAPH-19). A call that may not run gets its one structured result and
leaves the queue.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import ClassVar

from orchestrator.core.accounting.effect_cost import ZERO, compute_run_reserve
from orchestrator.core.accounting.remaining_estimate import key_of, too_little
from orchestrator.core.approval.change_requests import with_settled_change_request
from orchestrator.core.calls.authorization import CallAuthorizer
from orchestrator.core.calls.authorization_result import Authorization
from orchestrator.core.calls.open_effects import action_key
from orchestrator.core.calls.resource_locks import find_busy_lock_key, wait_for_resource_lock
from orchestrator.core.common.frozen_model import FrozenModel, with_entry, without_keys
from orchestrator.core.common.sliding_window import with_call
from orchestrator.core.domain.graph import Interrupt
from orchestrator.core.domain.run_events import AnyEvent, TimerFired
from orchestrator.core.domain.run_state import Call, Counters, MalformedTool, RunState
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.guardrails.policy_evaluation import with_foreseen
from orchestrator.core.nodes.acting.act import not_run
from orchestrator.core.workflow.interrupts import interrupt_for, refusal_said
from orchestrator.core.workflow.node_protocol import (
    NodeContext,
    NodeResult,
    RefusedEffect,
    make_interrupt_result,
    trace_event,
)
from orchestrator.core.workflow.plain_node import PlainNode
from traces.core.events.phases import Phase
from traces.core.events.trace_events import BreakerTripped
from traces.core.integrity.chain import TraceEntry


class Config(FrozenModel):
    """Settings of the node.

    `unverified`: the treatment of a mutating result without a verifier (R-TOOL-12).
    """

    unverified: str = "refused"


class CheckTool(PlainNode):
    kind: ClassVar[str] = "check_tool"
    outcomes: ClassVar[tuple[str, ...]] = (
        "eligible",
        "malformed",
        "missing_info",
        "unregistered",
        "needs_approval",
        "denied",
        "over_budget",
    )
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.TOOL_ELIGIBILITY)
    artifact: ClassVar[str] = "authorized call"
    starts_work: ClassVar[bool] = True
    config: ClassVar[type[FrozenModel]] = Config

    def enter(self, view: NodeContext) -> NodeResult:
        """Examine the front call; fill the batch while the next calls are parallel reads too."""
        front = CallAuthorizer(view, view.state.queue[0], first=True).ask()
        if (
            front.verdict in ("eligible", "needs_approval")
            and (short := _find_budget_shortfall(view, front.call)) is not None
        ):
            return NodeResult(
                state=view.state, interrupt=interrupt_for(short), said=front.said + refusal_said(short)
            )  # fmt: skip
        if front.verdict != "eligible":
            return self._refuse_call(view, front)
        assert front.spec is not None
        if (key := find_busy_lock_key(view, front.spec, front.call)) is not None:
            # After the wait for a lock the whole check is repeated, because much may have changed.
            return wait_for_resource_lock(view, view.state, front.call, key)
        batch, said = [front], list(front.said)
        limit = view.pins.boundary.max_parallel_tool_calls
        if _is_parallel_read(front.spec):
            batch.extend(self._companions(view, limit - 1, front))
            said.extend(word for examined in batch[1:] for word in examined.said)
        calls = tuple(examined.call for examined in batch)
        state = view.state.evolve(
            batch=calls,
            queue=view.state.queue[len(calls) :],
            malformed=_without_repaired_tools(view.state, tuple(call.tool for call in calls)),
            timer=None,
        )
        for call in calls:
            state = with_settled_change_request(state, call)
        if front.call.grant or front.call.id in state.planned:
            # The tool is part of the plan from here on; each further call is still judged by its own values.
            state = with_foreseen(state, (front.call.tool,))
        return NodeResult(state=state, outcome="eligible", said=tuple(said))

    def on(self, view: NodeContext, event: AnyEvent) -> NodeResult:
        """Check a call again when the wait for a resource that another run was writing to is over."""
        due = view.state.timer is not None and view.at >= view.state.timer
        if not (due and isinstance(event, TimerFired)):
            return super().on(view, event)
        if view.state.paused or view.headroom.slice_over:
            return NodeResult(state=view.state.evolve(held=True, timer=None))
        return self.enter(view)

    def _companions(self, view: NodeContext, room: int, front: Authorization) -> list[Authorization]:
        """Return the next calls that may run in parallel: read-only, safe, eligible and distinct."""
        found: list[Authorization] = []
        seen = {action_key(front.call)}
        held = view
        for call in view.state.queue[1 : room + 1]:
            held = _with_room_taken(held, found[-1] if found else front)
            examined = CallAuthorizer(held, call, first=False).ask()
            key = action_key(examined.call)
            if examined.verdict != "eligible" or not _is_parallel_read(examined.spec) or key in seen:
                break
            seen.add(key)
            found.append(examined)
        return found

    def _refuse_call(self, view: NodeContext, examined: Authorization) -> NodeResult:
        state, said = view.state, examined.said
        if examined.verdict == "over_budget":
            assert examined.refused is not None
            reason = examined.refused.dimension
            said += refusal_said(examined.refused)
            if examined.refused.account == "run" and view.pins.boundary.on_exhaustion == "request":
                return NodeResult(state=state, interrupt=interrupt_for(examined.refused), said=said)
            return NodeResult(state=state.evolve(reason=reason), outcome="over_budget", said=said)
        if examined.verdict == "needs_approval":
            queue = (examined.call, *state.queue[1:])
            repaired = _without_repaired_tools(state, (examined.call.tool,))
            asking = state.evolve(queue=queue, malformed=repaired)
            return NodeResult(state=asking, outcome="needs_approval", said=said)
        return self._answer_call(view, examined, said)

    def _answer_call(
        self, view: NodeContext, examined: Authorization, said: tuple[TraceEntry, ...]
    ) -> NodeResult:
        """Give the call its structured result and remove it from the queue."""
        result, why = not_run(view, examined.call, examined.verdict, examined.detail)
        state = view.state.evolve(
            queue=view.state.queue[1:],
            results=(*view.state.results, result),
            counters=_with_counted_denial(view.state.counters, unauthorized=examined.unauthorized),
            malformed=_with_malformed_turn(view.state, examined),
            reason=f"{examined.verdict}:{examined.call.tool}",
            asked=examined.missing,
            last_askers=(examined.call.by,),
        )
        said = (*said, why)
        if examined.unauthorized and state.counters.denials >= view.pins.boundary.denial_limit:
            return _stop_after_denials(view, state, examined, said)
        return NodeResult(state=state, outcome=examined.verdict, said=said)


def _find_budget_shortfall(view: NodeContext, call: Call) -> RefusedEffect | None:
    """Return the budget that would be too small to finish the run after this call, or None (R-BUDGET-4).

    A call with a shortfall is not made, and no person is asked to approve it.
    """
    key = key_of("t", call.tool, view.state.usage)
    return too_little(view.graph, view.manifest, view.state, key)


def _is_parallel_read(spec: ToolSpec | None) -> bool:
    return spec is not None and spec.parallel_safe and not spec.is_mutating


def _with_counted_denial(counters: Counters, *, unauthorized: bool) -> Counters:
    return counters.evolve(
        denials=counters.denials + 1 if unauthorized else counters.denials, unchanged=counters.unchanged + 1
    )


def _stop_after_denials(
    view: NodeContext, state: RunState, examined: Authorization, said: tuple[TraceEntry, ...]
) -> NodeResult:
    """Stop a run that keeps asking for forbidden calls, whatever its graph says (R-TOOL-5)."""
    tripped = BreakerTripped(
        breaker="safety",
        reason="repeated_denials",
        subject=examined.call.tool[:200],
        limit=Decimal(view.pins.boundary.denial_limit),
        actual=Decimal(state.counters.denials),
    )
    told = (*said, trace_event(Phase.ESCALATION_CHECK, tripped))
    return make_interrupt_result(state, Interrupt.PERMISSION_DENIED, "repeated_denials", told)


def _with_malformed_turn(state: RunState, examined: Authorization) -> Mapping[str, MalformedTool]:
    """Count one more turn with malformed arguments of this tool.

    Several malformed calls in one reply count as one turn: the model wrote the last one before it learned of
    the first.
    """
    if examined.verdict != "malformed":
        return state.malformed
    before, turn = state.malformed.get(examined.call.tool), state.linked
    turns = 1 if before is None else before.turns + (before.last != turn)
    return with_entry(state.malformed, examined.call.tool, MalformedTool(turns=turns, last=turn))


def _without_repaired_tools(state: RunState, tools: tuple[str, ...]) -> Mapping[str, MalformedTool]:
    """Return `state.malformed` without the tools whose arguments are correct again in a later turn."""
    right = [tool for tool in tools if tool in state.malformed and state.malformed[tool].last != state.linked]
    return without_keys(state.malformed, *right) if right else state.malformed


def _with_room_taken(view: NodeContext, taken: Authorization) -> NodeContext:
    """Return the view as if `taken` were in flight too.

    A batch as a whole can therefore not pass a limit, a rate or what the tenant has left.
    """
    state, headroom = view.state, view.headroom
    assert taken.spec is not None
    amounts = compute_run_reserve(taken.spec, granted=False, step=False)
    tenant_cost, cost = headroom.tenant_cost, amounts.get("cost_usd", ZERO)
    told = (one.evolve(left=one.left - amounts.get(one.dimension, ZERO)) for one in headroom.refused)
    headroom = headroom.evolve(
        refused=tuple(told), tenant_cost=None if tenant_cost is None else tenant_cost - cost
    )
    limits = {name: limit - amounts.get(name, ZERO) for name, limit in state.limits.items()}
    held = state.evolve(limits=limits, rates=with_call(state.rates, taken.call.tool, view.at))
    return view._replace(state=held, headroom=headroom)


KIND = CheckTool()
