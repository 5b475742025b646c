"""Invoke one tool call: intent, retry, and how its outcome moves the call on (R-TOOL-8 to 10)."""

from orchestrator.core.accounting.effect_cost import compute_run_reserve
from orchestrator.core.accounting.price_correction import undone_within
from orchestrator.core.accounting.side_effects import undo_reserve
from orchestrator.core.calls.action_digest import action_digest
from orchestrator.core.calls.open_effects import looks_first, open_of
from orchestrator.core.calls.resource_locks import keys_of
from orchestrator.core.common.frozen_model import with_entry
from orchestrator.core.domain.call_outcomes import CallFacts, Fate, fate_of
from orchestrator.core.domain.effects import CallTool
from orchestrator.core.domain.run_events import ToolFailed
from orchestrator.core.domain.run_state import Call, PendingEffect, RunState
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.guardrails.policy_evaluation import with_sent
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from traces.core.events.phases import Phase
from traces.core.events.trace_events import CallAttempted


def with_updated_call(state: RunState, call: Call) -> tuple[Call, ...]:
    """Return the batch with `call` in place of its former version."""
    return tuple(call if held.id == call.id else held for held in state.batch)


def launch_call(
    view: NodeContext, state: RunState, call: Call, ordinal: int, *, undoes: bool = False
) -> NodeResult:
    """Request one attempt of a checked call.

    Only the first attempt carries the grant: the later ones are the same action. A compensating call has
    the tool's own timeout, even if the run's time is over.
    """
    spec = view.pins.by_name[call.tool]
    assert call.arguments is not None
    assert call.argument_digest is not None
    assert call.key is not None
    granted, step = call.grant is not None, ordinal == 0 and call.attempt == 1
    counting = compute_run_reserve(spec, granted=granted, step=step)
    reserve = undone_within(state, undo_reserve(spec)) if undoes else counting
    first_use = call.grant is not None and not call.used_grant
    effect = CallTool(
        id=view.effect_id(ordinal, call.attempt),
        node=view.node.id,
        call=call.id,
        tool=spec.name,
        tool_digest=view.pins.tool_digests[spec.name],
        arguments=call.arguments,
        argument_digest=call.argument_digest,
        key=call.key,
        reserve=reserve,
        timeout_ms=spec.timeout_ms if undoes else view.deadline_ms(spec.timeout_ms),
        attempt=call.attempt,
        mutating=spec.is_mutating,
        honours_keys=spec.honours_keys,
        lookup=spec.lookup,
        conclusive=spec.conclusive,
        external=spec.external,
        look_first=not undoes and looks_first(view, state, call),
        grant=call.grant.request if first_use and call.grant is not None else None,
        action_digest=action_digest(view, call, spec) if first_use else None,
        conflicts=keys_of(view, spec, call),
    )
    flying = call.evolve(
        effect=effect.id, rung="attempted", used_grant=call.used_grant or first_use, error=None
    )
    pending = PendingEffect(
        kind="call_tool",
        call=call.id,
        attempt=call.attempt,
        reserve=reserve,
        mutating=spec.is_mutating,
        purpose="undo" if undoes else "call",
        claims=bool(effect.conflicts),
    )
    body = CallAttempted(
        call=call.id,
        effect=effect.id,
        tool=spec.name,
        tool_version=effect.tool_digest,
        arguments=call.arguments,
        argument_digest=call.argument_digest,
        idempotency_key=call.key,
        attempt=call.attempt,
        mutating=spec.is_mutating,
        grant=effect.grant,
    )
    launched = with_sent(view, state, call, spec).evolve(
        batch=with_updated_call(state, flying),
        pending=with_entry(state.pending, effect.id, pending),
        timer=None,
    )
    return NodeResult(state=launched, said=(trace_event(Phase.TOOL_INVOCATION, body),), effects=(effect,))


def may_repeat(view: NodeContext, call: Call, *, transient: bool, sent: bool) -> bool:
    """Return whether a failed call may be retried automatically (R-TOOL-10).

    Only safe calls are retried, within the retry gauge.
    """
    spec = view.pins.by_name[call.tool]
    safe = not spec.is_mutating or (not sent and spec.honours_keys)
    return safe and transient and _tries_left(view.state, call.attempt, spec.max_retries)


def repeats_left(state: RunState, spec: ToolSpec, attempt: int) -> bool:
    """Return whether a change may be sent once more under its idempotency key.

    The tool's retry policy gives the number of repeats, at least one, within the retry gauge. A
    compensating call follows the policy alone, without that minimum.
    """
    most = spec.max_retries if state.unwinding is not None else max(1, spec.max_retries)
    return spec.honours_keys and _tries_left(state, attempt, most)


def may_pass(event: ToolFailed) -> bool:
    """Return whether a failure may be temporary.

    Any failure of a call that was sent may be; one of a call that was not sent only if it is marked
    transient.
    """
    return event.sent or event.transient


def classify_call_failure(view: NodeContext, call: Call, event: ToolFailed) -> Fate:
    """Return the fate of a call that failed."""
    spec = view.pins.by_name[call.tool]
    repeats = may_pass(event) and repeats_left(view.state, spec, call.attempt)
    return fate_of(
        CallFacts(
            mutating=spec.is_mutating, sent=event.sent, answer=event.answer, keys=spec.honours_keys,
            repeats_left=repeats, final=spec.error_means_no_effect,
            before=open_of(view.state, call) is not None, conclusive=spec.conclusive, look=event.look,
        )
    )  # fmt: skip


def _tries_left(state: RunState, attempt: int, most: int) -> bool:
    gauge = state.limits.get("retries")
    retries = most if gauge is None else min(most, int(gauge))
    return attempt <= retries and state.halting is None
