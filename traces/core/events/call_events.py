"""Events about calls, their rungs, and what they cost (R-LOOP-5, R-TOOL-5, R-BUDGET-3)."""

from decimal import Decimal
from typing import Literal

from pydantic import Field

from traces.core.events.event_base import Amounts, TraceEventBody

# -- calls and the grounding ladder (R-LOOP-5) -------------------------------------------------------------


class CallRequested(TraceEventBody):
    """Rung 1, intended: the model or a node asks for a call. `tool` is cut to 200 characters when unknown."""

    kind: Literal["call_requested"] = "call_requested"
    call: str
    tool: str
    arguments: str
    ordinal: int
    by: Literal["model", "node", "person", "undo"]


class CallChecked(TraceEventBody):
    """One step of the eligibility chain: its verdict with the rule and the boundary version."""

    kind: Literal["call_checked"] = "call_checked"
    call: str
    step: Literal["registered", "arguments", "permitted", "provenance", "budget", "risk", "approval"]
    decision: Literal["allow", "sandbox", "approval_required", "deny"]
    rule: str
    boundary: str
    detail: str = ""


class CallAnsweredNot(TraceEventBody):
    """A requested call that was never run and its structured result: denied, malformed, capped, blocked."""

    kind: Literal["call_not_run"] = "call_not_run"
    call: str
    status: str
    detail: str
    result: str


class CallAttempted(TraceEventBody):
    """Rung 2, attempted: the intent was committed."""

    kind: Literal["call_attempted"] = "call_attempted"
    call: str
    effect: str
    tool: str
    tool_version: str
    arguments: str
    argument_digest: str
    idempotency_key: str
    attempt: int
    mutating: bool
    grant: str | None = None


class CallObserved(TraceEventBody):
    """Rung 3, observed: what came back, as it came; failures too (R-LOOP-7). Of an answer that could not be
    read, or not whole: `code` is its status (0: its protocol knows none), `whole` the SHA-256 of what was
    read of it."""

    kind: Literal["call_observed"] = "call_observed"
    call: str
    effect: str
    status: str
    observation: str | None
    size: int
    request_id: str = ""
    truncated: bool = False
    code: int = 0
    whole: str = ""


class CallVerified(TraceEventBody):
    """Rung 4, verified (or not): which validator looked and what it found."""

    kind: Literal["call_verified"] = "call_verified"
    call: str
    validator: str
    verdict: Literal["verified", "failed", "conflict", "low_confidence", "unsafe", "observed_only"]
    detail: str = ""


class SafetyFound(TraceEventBody):
    """A safety detector found something in what came in, what a tool answered, or what would go out
    (R-TOOL-24)."""

    kind: Literal["safety_found"] = "safety_found"
    detector: str
    rule: str
    place: Literal["input", "result", "output"]
    subject: str
    severity: Literal["off", "note", "gate", "stop"]


class ConflictWaited(TraceEventBody):
    """A call waits because another run writes to the same thing, by the key declared for it (G10)."""

    kind: Literal["conflict_waited"] = "conflict_waited"
    call: str
    tool: str
    key: str


class PlanRepaired(TraceEventBody):
    """A call goes to another tool than was asked for, or the plan was changed in another way (R-TOOL-1)."""

    kind: Literal["plan_repaired"] = "plan_repaired"
    call: str
    tool: str
    by: str
    reason: str


class ParserDrifted(TraceEventBody):
    """A payload that does not fit its tool's declared form any more: kept as it came (R-TOOL-14)."""

    kind: Literal["parser_drifted"] = "parser_drifted"
    call: str
    tool: str
    tool_version: str
    observation: str
    detail: str


class FactCommitted(TraceEventBody):
    """Rung 5, committed."""

    kind: Literal["fact_committed"] = "fact_committed"
    fact: str
    version: int
    digest: str
    call: str
    observation: str
    validator: str
    trust: Literal["trusted", "untrusted"]


class FailureCommitted(TraceEventBody):
    """A verified failure is an error state: it supports no claim of success (R-LOOP-7)."""

    kind: Literal["failure_committed"] = "failure_committed"
    call: str
    tool: str
    error: str
    attempt: int
    observation: str | None = None


class CallInDoubt(TraceEventBody):
    """A mutating call that may or may not have happened; it is never repeated (R-TOOL-9)."""

    kind: Literal["call_in_doubt"] = "call_in_doubt"
    call: str
    effect: str
    tool: str
    reason: str


class EffectLeftOpen(TraceEventBody):
    """A change of which no result says whether it was made; the same is not sent again before that is settled
    (R-TOOL-9)."""

    kind: Literal["effect_left_open"] = "effect_left_open"
    call: str
    effect: str
    tool: str
    key: str
    error: str


class EffectSettled(TraceEventBody):
    """It is known what became of an effect that was open: `done` under the same key or as a look-up found it,
    `absent` as a conclusive look-up says, or a `person` said so."""

    kind: Literal["effect_settled"] = "effect_settled"
    call: str
    effect: str
    tool: str
    key: str
    by: Literal["done", "absent", "person"]


class CallRecovered(TraceEventBody):
    kind: Literal["call_recovered"] = "call_recovered"
    effect: str
    resolution: Literal["repeated", "found", "abandoned", "in_doubt", "lost"]
    detail: str = ""


class GroundingViolation(TraceEventBody):
    """A claim that no invocation backs (R-LOOP-6)."""

    kind: Literal["grounding_violation"] = "grounding_violation"
    claim: str
    where: str
    source: str


# -- budgets and breakers ----------------------------------------------------------------------------------


class ReservationRefused(TraceEventBody):
    kind: Literal["reservation_refused"] = "reservation_refused"
    dimension: str
    limit: Decimal | None
    wanted: Decimal
    left: Decimal | None
    account: str = "run"


class BudgetSettled(TraceEventBody):
    kind: Literal["budget_settled"] = "budget_settled"
    effect: str
    amounts: Amounts
    unknown: bool = False
    overrun: Amounts = Field(default_factory=dict)


class BudgetExtended(TraceEventBody):
    kind: Literal["budget_extended"] = "budget_extended"
    amounts: Amounts
    by: str
    reason: str = ""


class BreakerTripped(TraceEventBody):
    """One of the breakers (R-BUDGET-12) tripped; `limit` and `actual` are in the breaker's own unit."""

    kind: Literal["breaker_tripped"] = "breaker_tripped"
    breaker: str
    reason: str
    subject: str = ""
    limit: Decimal | None = None
    actual: Decimal | None = None
