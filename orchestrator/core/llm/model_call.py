"""Calling a model from a node: prompt, reservation, retries. Shared by every kind that makes one model
call."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

from budgets.core.pricing import affordable
from orchestrator.core.accounting.effect_cost import model_reserve, prompt_tokens
from orchestrator.core.common.backoff import delay_ms
from orchestrator.core.common.frozen_model import Value, with_entry
from orchestrator.core.common.model_profile import ModelProfile, Role
from orchestrator.core.domain.effects import CallModel, SetTimer
from orchestrator.core.domain.graph import Interrupt
from orchestrator.core.domain.run_events import ModelFailed, ModelReplied, Recovered
from orchestrator.core.domain.run_state import Pending, State
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.guardrails.safety_rules import breach
from orchestrator.core.llm import model_wait
from orchestrator.core.llm.context_window import Fitted, fitted
from orchestrator.core.llm.cost_downgrade import crossed, profile_in_force, thrifty
from orchestrator.core.llm.failover import base_profile, handed_to, heirs, helps
from orchestrator.core.llm.prompt_builder import Prompt, compile_prompt
from orchestrator.core.workflow.node_protocol import Step, View, interrupted, say
from traces.core.events.phases import Phase
from traces.core.events.trace_events import (
    BreakerTripped,
    CallRecovered,
    ModelCalled,
    ModelFailedOver,
    RetryScheduled,
)
from traces.core.events.trace_events import ModelFailed as ModelFailedBody
from traces.core.integrity.chain import Said

READ_CHARS = 256_000
# Runs admitted under an earlier core left a prompt's overheads out of what is left, and replay as they were.
OVERHEADS_SINCE = 4
# Those before this one were not answered shorter when money was short.
MONEY_SINCE = 5
# Those before this one took a reply that their budget had cut short for a whole one.
WHOLE_SINCE = 6
# Those before this one lost what was said of a call that was to be made again where their time was over.
ANEW_SINCE = 8
# Those before this one took who would be asked now for the one whose call had failed.
FAILING_SINCE = 10
# Those before this one waited out a backoff though they were to end.
HALTING_SINCE = 10
# Those before this one counted an empty reply as a failed attempt of the call after it.
EMPTY_SINCE = 10
# Tokens of output below which an answer is of no use: less is refused rather than asked for.
LEAST_OUTPUT = 64
# How providers say that a reply stopped at the limit of its output.
CUT = frozenset({"length", "max_tokens", "max_output_tokens"})


class Asking(Value):
    """How a node asks its model. Tokens and counts; `exchanges` is the window of the conversation."""

    role: Role = "executor"
    prompt: str
    max_output_tokens: int | None = None
    exchanges: int = 8
    empty_retries: int = 2


def wanted_output(profile: ModelProfile, config: Asking) -> int:
    """How many tokens of output a call is to have where no budget is short."""
    return min(profile.max_output_tokens, config.max_output_tokens or profile.max_output_tokens)


def least_output(wanted: int) -> Decimal:
    """Of so many tokens, as many as an answer of any use takes."""
    return Decimal(min(LEAST_OUTPUT, wanted))


def ask(view: View, state: State, config: Asking, tools: tuple[ToolSpec, ...]) -> Step:
    """Ask now. The output limit is set so that the reservation cannot be exceeded (R-BUDGET-2)."""
    before, state = state, state.evolve(thrifty=thrifty(state))
    profile, wanted, fit = _played(view, state, config, tools)
    passed = crossed(view.pins, before, config.role, profile)
    attempt = state.counters.model_attempts + 1
    if fit.halt is not None:
        return fit.halt._replace(said=(*passed, *fit.halt.said))
    prompt = fit.prompt
    limit, shortened = _output_limit(view, state, profile, prompt, wanted)
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
    pending = Pending(kind="call_model", call=None, attempt=attempt, reserve=reserve, profile=profile.name)
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
    said = (*passed, *fit.said, say(Phase.ACTION_SELECTION, body))
    return Step(state=asked, said=said, effects=(effect,))


def _played(
    view: View, state: State, config: Asking, tools: tuple[ToolSpec, ...]
) -> tuple[ModelProfile, int, Fitted]:
    """Who is asked, for how many tokens of output at the most, and the prompt.

    A prompt that is too long for the cheaper model is the usual one's: saving money ends no run.
    """
    usual = base_profile(view.pins, state, config.role)
    profile = profile_in_force(view.pins, state, config.role)
    wanted, fit = _fit(view, state, config, tools, profile)
    if fit.halt is not None and profile is not usual:
        wider = _fit(view, state, config, tools, usual)
        if wider[1].halt is None:
            return usual, *wider
    return profile, wanted, fit


def _fit(
    view: View, state: State, config: Asking, tools: tuple[ToolSpec, ...], profile: ModelProfile
) -> tuple[int, Fitted]:
    wanted = wanted_output(profile, config)
    fresh = view._replace(state=state)

    def compiled(exchanges: tuple[str, ...]) -> Prompt:
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
    return wanted, fitted(state, profile, view.desk, window, max_output=wanted, compiled=compiled)


def _output_limit(
    view: View, state: State, profile: ModelProfile, prompt: Prompt, wanted: int
) -> tuple[int, str]:
    """As many tokens as every dimension has left, and the one that made it fewer than wanted ("": none did).
    At least what is of use: the reservation then refuses what cannot be."""
    lefts = {name: state.left(name) for name in ("output_tokens", "total_tokens")}
    total, money = lefts["total_tokens"], state.left("cost_usd")
    asked = prompt_tokens(profile, prompt.body, prompt.messages, prompt.tools)
    if total is not None:
        older = view.manifest.core_version < OVERHEADS_SINCE
        lefts["total_tokens"] = total - (len(prompt.body) if older else asked)
    if money is not None and view.manifest.core_version >= MONEY_SINCE:
        lefts["cost_usd"] = affordable(profile.price, asked, money)
    scarce = {name: left for name, left in lefts.items() if left is not None}
    limit = min([Decimal(wanted), *scarce.values()])
    if view.manifest.core_version < WHOLE_SINCE:
        return int(max(Decimal(1), limit)), ""
    shortened = min(scarce, key=scarce.__getitem__) if limit < wanted else ""
    return int(max(least_output(wanted), limit)), shortened


def cut_short(view: View, event: ModelReplied, said: tuple[Said, ...]) -> Step | None:
    """The end of a run whose budget cut a reply short: no whole answer, nor surely whole calls; None for any
    other reply. All of it stays in the trace, and none of it is used (R-BUDGET-18)."""
    state = view.state
    if not state.shortened or event.finish.lower() not in CUT:
        return None
    tripped = BreakerTripped(breaker="budget_gate", reason=state.shortened, subject="reply cut short")
    told = (*said, say(Phase.ESCALATION_CHECK, tripped))
    fresh = state.evolve(counters=state.counters.evolve(model_attempts=0), cut=state.shortened)
    return interrupted(fresh, Interrupt.BUDGET_EXHAUSTED, state.shortened, told)


def again(
    view: View, event: ModelFailed | Recovered, config: Asking, tools: tuple[ToolSpec, ...]
) -> Step | None:
    """Another attempt after a failure: of whoever is next in line where the provider could not be asked, or a
    scheduled one where it is safe to repeat. None when neither is left.

    Attempts are the step's and the provider's: how many there may be is what the role's usual model allows,
    also once a cheaper one plays it; who takes over from it has as many as it allows itself. An open circuit
    is not waited for where somebody else can be asked; it counts as no attempt, like the line in front of a
    model. Who is away for longer is waited for (core/llm/model_wait.py). A run that is to end goes on
    to that at once.
    """
    state = _uncounted(view, event)
    if state.halting is not None and view.manifest.core_version >= HALTING_SINCE:
        return Step(state=state, said=(failed(event),), anew=True)
    profile = _failing(view, config)
    cause = model_wait.Failed(profile, event.effect, _cause(event), _wish(event))
    if cause.cause == model_wait.BUSY and model_wait.waits_here(view):
        return model_wait.in_line(view, state, cause, (failed(event),))
    left = _attempts_left(view, event, config)
    shut = _circuit_open(event)
    handed = None if left and not shut else _handed_over(view, event, profile, config, tools)
    if handed is not None:
        return handed
    if left and not model_wait.refused_by_us(view, event):
        return _scheduled(view, state, event, profile)
    return model_wait.waited(view, state, event, cause, (failed(event), *_turned_away(event, profile)))


def _uncounted(view: View, event: ModelFailed | Recovered) -> State:
    """The state, in which a call that we did not let out is no attempt."""
    state = view.state
    if not model_wait.refused_by_us(view, event):
        return state
    attempts = state.counters.model_attempts - 1
    return state.evolve(counters=state.counters.evolve(model_attempts=attempts))


def _attempts_left(view: View, event: ModelFailed | Recovered, config: Asking) -> bool:
    """Whether the same call may be made once more, as far as attempts go."""
    usual = base_profile(view.pins, view.state, config.role)
    gauge = view.state.limits.get("retries", Decimal(usual.max_retries))
    retries = min(usual.max_retries, int(gauge))
    transient = isinstance(event, Recovered) or event.transient
    return transient and view.state.counters.model_attempts <= retries


def _scheduled(view: View, state: State, event: ModelFailed | Recovered, profile: ModelProfile) -> Step:
    """The same call again, after a moment that grows with each attempt."""
    attempt = state.counters.model_attempts
    wait = delay_ms(attempt, event.effect, _wish(event))
    body = RetryScheduled(effect=event.effect, attempt=attempt + 1, delay_ms=wait, cause=_cause(event))
    timer = SetTimer(id=view.effect_id(0, attempt), due=view.at + _ms(wait))
    return Step(
        state=state.evolve(timer=timer.due),
        said=(failed(event), *_turned_away(event, profile), say(Phase.ESCALATION_CHECK, body)),
        effects=(timer,),
    )


def _wish(event: ModelFailed | Recovered) -> int | None:
    return event.retry_after_ms if isinstance(event, ModelFailed) else None


def unavailable(view: View, event: ModelFailed) -> Step:
    """The way out of a node whose model brought nothing and is not asked again."""
    state = _uncounted(view, event)
    said: tuple[Said, ...] = (failed(event),)
    if model_wait.refused_by_us(view, event):
        said += (
            say(Phase.ESCALATION_CHECK, BreakerTripped(breaker="circuit", reason="open", subject=view.asked)),
        )
    elif (tripped := gave_up(event, state.counters.model_attempts)) is not None:
        said += (say(Phase.ESCALATION_CHECK, tripped),)
    over = state.evolve(counters=state.counters.evolve(model_attempts=0), reason=event.error)
    return Step(state=over, outcome="model_unavailable", said=said)


def timed(view: View, asked: Callable[[State], Step]) -> Step:
    """What a node that waits to ask its model does when a time has come: ask once more, wait on, or give up
    where its patience is over. `asked` makes the call."""
    woken = model_wait.woken(view)
    if woken.over:
        return _lost_patience(view)
    return Step(state=view.state) if woken.state is None else asked(woken.state)


def _lost_patience(view: View) -> Step:
    state = view.state
    assert state.away is not None
    said = model_wait.given_up_said(state, state.away.cause)
    over = state.evolve(counters=state.counters.evolve(model_attempts=0), reason=state.away.cause, timer=None)
    return Step(state=over, outcome="model_unavailable", said=(said,))


def _handed_over(
    view: View,
    event: ModelFailed | Recovered,
    profile: ModelProfile,
    config: Asking,
    tools: tuple[ToolSpec, ...],
) -> Step | None:
    """The call again, of the next in line that can hold the prompt and be paid, under a reservation of its
    own; None where nobody is, or where nobody would do better (R-TOOL-22)."""
    if not helps(event):
        return None
    state, pins = view.state, view.pins
    able = (one for one in heirs(pins, state, config.role, profile) if _able(view, one, config, tools))
    if (heir := next(able, None)) is None:
        return None
    body = ModelFailedOver(
        effect=event.effect,
        profile=profile.name,
        to=heir.name,
        reason=_cause(event),
        attempts=state.counters.model_attempts,
    )
    said = (failed(event), *_turned_away(event, profile), say(Phase.ESCALATION_CHECK, body))
    return Step(state=handed_to(pins, state, config.role, profile, heir), said=said, anew=True)


def _failing(view: View, config: Asking) -> ModelProfile:
    """Whose call brought nothing: not always who would be asked now. What it cost may have passed the
    threshold, an extension taken that back; a prompt too long for the cheaper model was the usual one's."""
    if view.manifest.core_version < FAILING_SINCE:
        return profile_in_force(view.pins, view.state, config.role)
    return next(one for one in view.pins.profiles if one.name == view.asked)


def _able(view: View, heir: ModelProfile, config: Asking, tools: tuple[ToolSpec, ...]) -> bool:
    """Whether the prompt fits the heir's window, and the least answer what is left of the run's money."""
    _, fit = _fit(view, view.state, config, tools, heir)
    if fit.halt is not None:
        return False
    prompt, left = fit.prompt, view.state.left("cost_usd")
    least = int(least_output(wanted_output(heir, config)))
    reserve = model_reserve(heir, prompt.body, prompt.messages, prompt.tools, least)
    return left is None or reserve.get("cost_usd", Decimal(0)) <= left


def once_more(view: View, state: State, said: tuple[Said, ...], asked: Callable[[State], Step]) -> Step:
    """The same call again, which brought nothing: after a lease was lost, or a reply without a word. What is
    said of it holds whether or not the run may go on just now. `asked` makes the call."""
    if view.manifest.core_version >= ANEW_SINCE:
        return Step(state=state, said=said, anew=True)
    step = asked(state)
    return step._replace(said=(*said, *step.said))


def emptied(view: View, state: State, empty: int) -> State:
    """The state after that many replies without a word. The provider did answer: none of them is a failed
    attempt."""
    attempts = empty if view.manifest.core_version < EMPTY_SINCE else 0
    return state.evolve(counters=state.counters.evolve(empty=empty, model_attempts=attempts))


def _circuit_open(event: ModelFailed | Recovered) -> bool:
    return isinstance(event, ModelFailed) and event.error == "circuit_open"


def _turned_away(event: ModelFailed | Recovered, profile: ModelProfile) -> tuple[Said, ...]:
    """The circuit's breaker, where the call was not sent for it (R-BUDGET-13)."""
    if not _circuit_open(event):
        return ()
    body = BreakerTripped(breaker="circuit", reason="open", subject=profile.name)
    return (say(Phase.ESCALATION_CHECK, body),)


def breached(view: View, event: ModelReplied, said: tuple[Said, ...]) -> Step | None:
    """The end of a run whose model breaks a safety rule in its reply; None where it does not. Fails closed:
    nothing of the reply is used, all of it stays in the trace (R-BUDGET-12)."""
    texts = [event.answer, *(request.arguments for request in event.requests)]
    view.desk.require(digest for digest in texts if digest is not None)
    written = [view.desk.text(digest, READ_CHARS) for digest in texts if digest is not None]
    found = breach(written, event.redacted, view.pins.prompts.values())
    if found is None:
        return None
    tripped = BreakerTripped(breaker="safety", reason=found, subject="reply")
    told = (*said, say(Phase.ESCALATION_CHECK, tripped))
    return interrupted(view.state.evolve(reply=event.reply), Interrupt.UNSAFE, found, told)


def gave_up(event: ModelFailed | Recovered, attempts: int) -> BreakerTripped | None:
    """The retry storm's breaker, where retries were used up (R-BUDGET-12)."""
    if isinstance(event, ModelFailed) and not event.transient:
        return None
    return BreakerTripped(
        breaker="retry_storm", reason=_cause(event), limit=Decimal(attempts), actual=Decimal(attempts + 1)
    )


def failed(event: ModelFailed | Recovered) -> Said:
    """The trace's word for a call that brought no reply."""
    if isinstance(event, Recovered):
        return say(Phase.OBSERVATION_GROUNDING, CallRecovered(effect=event.effect, resolution="lost"))
    body = ModelFailedBody(
        effect=event.effect, error=event.error, transient=event.transient, detail=event.detail
    )
    return say(Phase.OBSERVATION_GROUNDING, body)


def _cause(event: ModelFailed | Recovered) -> str:
    return event.error if isinstance(event, ModelFailed) else "lost"


def _ms(amount: int) -> timedelta:
    return timedelta(milliseconds=amount)
