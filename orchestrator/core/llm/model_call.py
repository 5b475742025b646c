"""Model calls of a node: prompt, reservation and retries, shared by all kinds with one model call."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

from budgets.core.pricing import compute_affordable_output
from orchestrator.core.accounting.effect_cost import model_reserve, prompt_tokens
from orchestrator.core.common.backoff import delay_ms
from orchestrator.core.common.frozen_model import FrozenModel, with_entry
from orchestrator.core.common.model_profile import ModelProfile, Role
from orchestrator.core.domain.effects import CallModel, SetTimer
from orchestrator.core.domain.run_events import ModelFailed, Recovered
from orchestrator.core.domain.run_state import PendingEffect, RunState
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.llm import model_wait
from orchestrator.core.llm.context_window import FittedPrompt, fit_prompt
from orchestrator.core.llm.cost_downgrade import (
    is_cost_threshold_passed,
    profile_in_force,
    trace_threshold_crossing,
)
from orchestrator.core.llm.failover import (
    base_profile,
    can_failover_help,
    handed_to,
    list_failover_candidates,
)
from orchestrator.core.llm.model_failure import (
    build_retry_breaker,
    get_failure_cause,
    get_retry_after,
    is_circuit_open,
    trace_circuit_refusal,
    trace_model_failure,
)
from orchestrator.core.llm.prompt_builder import Prompt, compile_prompt
from orchestrator.core.workflow.node_protocol import (
    NodeContext,
    NodeResult,
    trace_event,
)
from traces.core.events.phases import Phase
from traces.core.events.trace_events import (
    BreakerTripped,
    ModelCalled,
    ModelFailedOver,
    RetryScheduled,
)
from traces.core.integrity.chain import TraceEntry

# Fewest output tokens of a useful answer: a smaller call is refused instead of sent.
LEAST_OUTPUT = 64


class ModelCallConfig(FrozenModel):
    """The settings with which a node calls its model.

    Units are tokens and counts. `exchanges` is the window of the conversation.
    """

    role: Role = "executor"
    prompt: str
    max_output_tokens: int | None = None
    exchanges: int = 8
    empty_retries: int = 2


def wanted_output(profile: ModelProfile, config: ModelCallConfig) -> int:
    """Return the number of output tokens for a call when no budget is short."""
    return min(profile.max_output_tokens, config.max_output_tokens or profile.max_output_tokens)


def least_output(wanted: int) -> Decimal:
    """Return the smallest useful number of output tokens, at most `wanted`."""
    return Decimal(min(LEAST_OUTPUT, wanted))


def request_model_call(
    view: NodeContext, state: RunState, config: ModelCallConfig, tools: tuple[ToolSpec, ...]
) -> NodeResult:
    """Call the model now, with an output limit that keeps the cost within the reservation (R-BUDGET-2)."""
    before, state = state, state.evolve(thrifty=is_cost_threshold_passed(state))
    profile, wanted, fit = _select_profile_and_prompt(view, state, config, tools)
    passed = trace_threshold_crossing(view.pins, before, config.role, profile)
    attempt = state.counters.model_attempts + 1
    if fit.halt is not None:
        return fit.halt._replace(said=(*passed, *fit.halt.said))
    prompt = fit.prompt
    limit, shortened = _output_limit(state, profile, prompt, wanted)
    reserve = model_reserve(profile, prompt.body, prompt.messages, prompt.tools, limit)
    request = view.desk.put(prompt.body)
    effect = CallModel(
        id=view.effect_id(0, attempt),
        node=view.node.id,
        role=config.role,
        profile=profile.name,
        request=request,
        max_output_tokens=limit,
        reserve=reserve,
        timeout_ms=view.deadline_ms(profile.timeout_ms),
        attempt=attempt,
    )
    pending = PendingEffect(
        kind="call_model", call=None, attempt=attempt, reserve=reserve, profile=profile.name
    )
    body = ModelCalled(
        effect=effect.id,
        role=config.role,
        profile=profile.name,
        request=request,
        attempt=attempt,
        max_output_tokens=limit,
    )
    asked = state.evolve(
        pending=with_entry(state.pending, effect.id, pending),
        timer=None,
        counters=state.counters.evolve(model_attempts=attempt),
        shortened=shortened,
        cut="",
    )
    said = (*passed, *fit.said, trace_event(Phase.ACTION_SELECTION, body))
    return NodeResult(state=asked, said=said, effects=(effect,))


def _select_profile_and_prompt(
    view: NodeContext, state: RunState, config: ModelCallConfig, tools: tuple[ToolSpec, ...]
) -> tuple[ModelProfile, int, FittedPrompt]:
    """Return the profile to call, its maximum number of output tokens, and the prompt.

    If the prompt is too long for the cheaper model, the usual model is called: saving money must not end a
    run.
    """
    usual = base_profile(view.pins, state, config.role)
    profile = profile_in_force(view.pins, state, config.role)
    wanted, fit = _fit_profile_prompt(view, state, config, tools, profile)
    if fit.halt is not None and profile is not usual:
        wider = _fit_profile_prompt(view, state, config, tools, usual)
        if wider[1].halt is None:
            return usual, *wider
    return profile, wanted, fit


def _fit_profile_prompt(
    view: NodeContext,
    state: RunState,
    config: ModelCallConfig,
    tools: tuple[ToolSpec, ...],
    profile: ModelProfile,
) -> tuple[int, FittedPrompt]:
    wanted = wanted_output(profile, config)
    fresh = view._replace(state=state)

    def compile_exchanges(exchanges: tuple[str, ...]) -> Prompt:
        return compile_prompt(
            fresh,
            role=config.role,
            profile=profile.name,
            prompt=config.prompt,
            tools=tools,
            exchanges=exchanges,
            max_output=wanted,
        )

    window = state.window(config.exchanges)
    return wanted, fit_prompt(
        state, profile, view.desk, window, max_output=wanted, compiled=compile_exchanges
    )


def _output_limit(state: RunState, profile: ModelProfile, prompt: Prompt, wanted: int) -> tuple[int, str]:
    """Return the output limit in tokens and the dimension that reduced it ("" if none did).

    The limit is what every dimension has left, but never less than a useful answer needs. The reservation
    then refuses a call that cannot be paid for.
    """
    lefts = {name: state.left(name) for name in ("output_tokens", "total_tokens")}
    total, money = lefts["total_tokens"], state.left("cost_usd")
    asked = prompt_tokens(profile, prompt.body, prompt.messages, prompt.tools)
    if total is not None:
        lefts["total_tokens"] = total - asked
    if money is not None:
        lefts["cost_usd"] = compute_affordable_output(profile.price, asked, money)
    scarce = {name: left for name, left in lefts.items() if left is not None}
    limit = min([Decimal(wanted), *scarce.values()])
    shortened = min(scarce, key=scarce.__getitem__) if limit < wanted else ""
    return int(max(least_output(wanted), limit)), shortened


def retry_model_call(
    view: NodeContext, event: ModelFailed | Recovered, config: ModelCallConfig, tools: tuple[ToolSpec, ...]
) -> NodeResult | None:
    """Make another attempt after a failure, or return None if no attempt is possible.

    The attempt goes to the next profile in the failover chain if the provider could not be reached, or is a
    scheduled retry if repeating is safe. The role's usual model sets the number of attempts, even while a
    cheaper model plays the role; a profile that took over has its own number. A run does not wait for an open
    circuit if another profile can be called. A refusal by an open circuit counts as no attempt, and neither
    does waiting in line for a model. The run waits for a model that is unavailable for longer
    (core/llm/model_wait.py). A run that is about to end does so at once.
    """
    state = _without_refused_attempt(view, event)
    if state.halting is not None:
        return NodeResult(state=state, said=(trace_model_failure(event),), anew=True)
    profile = _get_failed_profile(view)
    cause = model_wait.FailedCall(profile, event.effect, get_failure_cause(event), get_retry_after(event))
    if cause.cause == model_wait.BUSY:
        return model_wait.in_line(view, state, cause, (trace_model_failure(event),))
    left = _attempts_left(view, event, config)
    shut = is_circuit_open(event)
    handed = None if left and not shut else _handed_over(view, event, profile, config, tools)
    if handed is not None:
        return handed
    if left and not model_wait.refused_by_us(event):
        return _schedule_model_retry(view, state, event, profile)
    return model_wait.wait_for_model(
        view, state, event, cause, (trace_model_failure(event), *trace_circuit_refusal(event, profile))
    )


def _without_refused_attempt(view: NodeContext, event: ModelFailed | Recovered) -> RunState:
    """Return the state in which a call that we refused to send does not count as an attempt."""
    state = view.state
    if not model_wait.refused_by_us(event):
        return state
    attempts = state.counters.model_attempts - 1
    return state.evolve(counters=state.counters.evolve(model_attempts=attempts))


def _attempts_left(view: NodeContext, event: ModelFailed | Recovered, config: ModelCallConfig) -> bool:
    """Return whether the retry limit allows the same call once more."""
    usual = base_profile(view.pins, view.state, config.role)
    gauge = view.state.limits.get("retries", Decimal(usual.max_retries))
    retries = min(usual.max_retries, int(gauge))
    transient = isinstance(event, Recovered) or event.transient
    return transient and view.state.counters.model_attempts <= retries


def _schedule_model_retry(
    view: NodeContext, state: RunState, event: ModelFailed | Recovered, profile: ModelProfile
) -> NodeResult:
    """Schedule the same call after a delay that grows with each attempt."""
    attempt = state.counters.model_attempts
    wait = delay_ms(attempt, event.effect, get_retry_after(event))
    body = RetryScheduled(
        effect=event.effect, attempt=attempt + 1, delay_ms=wait, cause=get_failure_cause(event)
    )
    timer = SetTimer(id=view.effect_id(0, attempt), due=view.at + _to_timedelta(wait))
    return NodeResult(
        state=state.evolve(timer=timer.due),
        said=(
            trace_model_failure(event),
            *trace_circuit_refusal(event, profile),
            trace_event(Phase.ESCALATION_CHECK, body),
        ),
        effects=(timer,),
    )


def exit_model_unavailable(view: NodeContext, event: ModelFailed) -> NodeResult:
    """Leave a node with `model_unavailable` when its model failed and is not called again."""
    state = _without_refused_attempt(view, event)
    said: tuple[TraceEntry, ...] = (trace_model_failure(event),)
    if model_wait.refused_by_us(event):
        said += (
            trace_event(
                Phase.ESCALATION_CHECK, BreakerTripped(breaker="circuit", reason="open", subject=view.asked)
            ),
        )
    elif (tripped := build_retry_breaker(event, state.counters.model_attempts)) is not None:
        said += (trace_event(Phase.ESCALATION_CHECK, tripped),)
    over = state.evolve(counters=state.counters.evolve(model_attempts=0), reason=event.error)
    return NodeResult(state=over, outcome="model_unavailable", said=said)


def handle_model_timer(view: NodeContext, asked: Callable[[RunState], NodeResult]) -> NodeResult:
    """Handle a timer of a node that waits to call its model: call, keep waiting, or give up.

    The node gives up when its patience is over. `asked` makes the call.
    """
    woken = model_wait.resume_model_wait(view)
    if woken.over:
        return _lost_patience(view)
    return NodeResult(state=view.state) if woken.state is None else asked(woken.state)


def _lost_patience(view: NodeContext) -> NodeResult:
    state = view.state
    assert state.away is not None
    said = model_wait.given_up_said(state, state.away.cause)
    over = state.evolve(counters=state.counters.evolve(model_attempts=0), reason=state.away.cause, timer=None)
    return NodeResult(state=over, outcome="model_unavailable", said=(said,))


def _handed_over(
    view: NodeContext,
    event: ModelFailed | Recovered,
    profile: ModelProfile,
    config: ModelCallConfig,
    tools: tuple[ToolSpec, ...],
) -> NodeResult | None:
    """Repeat the call with the next candidate that can hold the prompt and be paid for (R-TOOL-22).

    The repeated call has a reservation of its own. None if there is no such candidate, or if no other
    provider would do better.
    """
    if not can_failover_help(event):
        return None
    state, pins = view.state, view.pins
    able = (
        one
        for one in list_failover_candidates(pins, state, config.role, profile)
        if _can_take_over(view, one, config, tools)
    )
    if (heir := next(able, None)) is None:
        return None
    body = ModelFailedOver(
        effect=event.effect,
        profile=profile.name,
        to=heir.name,
        reason=get_failure_cause(event),
        attempts=state.counters.model_attempts,
    )
    said = (
        trace_model_failure(event),
        *trace_circuit_refusal(event, profile),
        trace_event(Phase.ESCALATION_CHECK, body),
    )
    return NodeResult(state=handed_to(pins, state, config.role, profile, heir), said=said, anew=True)


def _get_failed_profile(view: NodeContext) -> ModelProfile:
    """Return the profile whose call failed, which is not always the profile in force now.

    The cost of the call may have passed the cost threshold, or an extension may have reversed that. A prompt
    that is too long for the cheaper model went to the usual model.
    """
    return next(one for one in view.pins.profiles if one.name == view.asked)


def _can_take_over(
    view: NodeContext, heir: ModelProfile, config: ModelCallConfig, tools: tuple[ToolSpec, ...]
) -> bool:
    """Return whether the prompt fits the heir's window and the run can pay for the least answer."""
    _, fit = _fit_profile_prompt(view, view.state, config, tools, heir)
    if fit.halt is not None:
        return False
    prompt, left = fit.prompt, view.state.left("cost_usd")
    least = int(least_output(wanted_output(heir, config)))
    reserve = model_reserve(heir, prompt.body, prompt.messages, prompt.tools, least)
    return left is None or reserve.get("cost_usd", Decimal(0)) <= left


def _to_timedelta(amount: int) -> timedelta:
    return timedelta(milliseconds=amount)
