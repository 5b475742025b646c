"""Context pressure: trim a prompt near its limit, and send none beyond it (R-BUDGET-12).

The limit is the run's own dimension context_tokens, or the model's window less its answer. Above 80 % the
oldest exchanges are left out of the prompt: their results remain in it as facts, and complete in the trace.
An exchange whose fact the prompt does not show is kept. A prompt that is still beyond the limit is not
sent: the run stops.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from orchestrator.core.accounting.effect_cost import prompt_tokens
from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.domain.content_store import ContentStore
from orchestrator.core.domain.graph import Interrupt
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.llm.prompt_builder import Prompt, shown_facts
from orchestrator.core.workflow.node_protocol import NodeResult, make_interrupt_result, trace_event
from traces.core.events.phases import Phase
from traces.core.events.trace_events import BreakerTripped, ReservationRefused
from traces.core.integrity.chain import TraceEntry

BREAKER = "context_pressure"
SHARE = Decimal("0.8")
OWN, WINDOW = "context_tokens", "context_window"


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPrompt:
    """A prompt that fits, with the trace entries of its trimming; or the reason why there is none."""

    prompt: Prompt
    said: tuple[TraceEntry, ...] = ()
    halt: NodeResult | None = None


def fit_prompt(
    state: RunState,
    profile: ModelProfile,
    desk: ContentStore,
    exchanges: tuple[str, ...],
    *,
    max_output: int,
    compiled: Callable[[tuple[str, ...]], Prompt],
) -> FittedPrompt:
    """Compile the prompt with as many exchanges (links of the conversation, oldest first) as fit."""
    reason, limit = context_limit(state, profile, max_output)
    kept, prompt = exchanges, compiled(exchanges)
    wanted = size = prompt_tokens(profile, prompt.body, prompt.messages, prompt.tools)
    while size > limit * SHARE and len(kept) > 1 and _spoken_for(state, desk, kept[0]):
        kept = kept[1:]
        prompt = compiled(kept)
        size = prompt_tokens(profile, prompt.body, prompt.messages, prompt.tools)
    if size > limit:
        return FittedPrompt(prompt=prompt, halt=_halt_oversized_prompt(state, reason, limit, size))
    dropped = len(exchanges) - len(kept)
    return FittedPrompt(
        prompt=prompt, said=(_trace_narrowed_context(dropped, limit, wanted),) if dropped else ()
    )


def context_limit(state: RunState, profile: ModelProfile, max_output: int) -> tuple[str, Decimal]:
    """Return the limit that applies, and how many prompt tokens it leaves."""
    own, window = state.limits.get(OWN), Decimal(max(1, profile.context_tokens - max_output))
    return (OWN, own) if own is not None and own <= window else (WINDOW, window)


def _spoken_for(state: RunState, desk: ContentStore, link: str) -> bool:
    """Return whether the prompt shows every current fact that came from this exchange."""
    results = {result["call"] for result in desk.json(link)["results"] if result["status"] == "ok"}
    shown = {fact.call for _, fact in shown_facts(state)}
    standing = {fact.call for fact in state.facts.values()}
    return not (results & standing) - shown


def _trace_narrowed_context(dropped: int, limit: Decimal, wanted: Decimal) -> TraceEntry:
    exchanges = f"{dropped} exchange{'s' if dropped > 1 else ''}"
    body = BreakerTripped(
        breaker=BREAKER, reason="narrowed", subject=exchanges, limit=(limit * SHARE).quantize(Decimal(1)),
        actual=wanted,
    )  # fmt: skip
    return trace_event(Phase.ACTION_SELECTION, body)


def _halt_oversized_prompt(state: RunState, reason: str, limit: Decimal, size: Decimal) -> NodeResult:
    refusal = ReservationRefused(dimension=reason, limit=limit, wanted=size, left=limit, account="run")
    tripped = BreakerTripped(breaker=BREAKER, reason=reason, limit=limit, actual=size)
    said = (trace_event(Phase.TERMINATION_CHECK, refusal), trace_event(Phase.TERMINATION_CHECK, tripped))
    return make_interrupt_result(state, Interrupt.BUDGET_EXHAUSTED, reason, said)
