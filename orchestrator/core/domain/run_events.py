"""The events that can happen to a run, as values (docs/ring.md, R-LOOP-1).

Each event carries the commit's one database time. `advance` consumes these events, and a replay feeds them
again. The trace's events (traces/core/events/trace_events.py) record what the machine made of them.
"""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Final, Literal

from pydantic import Field, TypeAdapter

from budgets.core.pricing import ModelPrice
from orchestrator.core.common.frozen_model import FrozenModel, Hex
from orchestrator.core.common.tool_price import ToolPrice
from orchestrator.core.domain.call_outcomes import Answer, LookUpMiss
from orchestrator.core.domain.effects import Amounts, SentChange
from orchestrator.core.domain.run_state import UnreadAnswer
from orchestrator.core.domain.tool_spec import Risk
from orchestrator.core.policy.rules import Policy


class RunEvent(FrozenModel):
    """The base of all events; `at` is database time."""

    at: datetime


class Started(RunEvent):
    kind: Literal["started"] = "started"


class ToolRequest(FrozenModel):
    """One call requested in a reply.

    `name` is cut to 200 characters; `arguments` is the digest of the raw text.
    """

    call_id: str = Field(max_length=200)
    name: str = Field(max_length=200)
    arguments: Hex


class ModelReplied(RunEvent):
    """A normalised reply: an answer, requested calls, a refusal, or none of these (R-LOOP-9).

    `usage` holds input_tokens, output_tokens (and cache figures) as the provider reported them, already
    sanitised; `counted` says whether the figures are the provider's. `redacted` are the kinds of secrets
    that were removed from the reply before any of it was stored.
    """

    kind: Literal["model_replied"] = "model_replied"
    effect: str
    reply: Hex
    answer: Hex | None = None
    requests: tuple[ToolRequest, ...] = ()
    refusal: bool = False
    finish: str = "stop"
    usage: Amounts
    counted: Literal["provider", "estimated"] = "provider"
    redacted: tuple[str, ...] = ()


class ModelFailed(RunEvent):
    """A model call without a reply.

    `error` is one of: timeout, rate_limited, server_error, unavailable, unreachable, cut_off, malformed,
    rejected, script_mismatch, unauthorized, no_key, no_such_model, egress_refused, circuit_open,
    model_busy, refused_by_wall, crashed. `retry_after_ms` is the delay that the provider asked for, capped.
    """

    kind: Literal["model_failed"] = "model_failed"
    effect: str
    error: str
    transient: bool
    detail: Hex | None = None
    retry_after_ms: int | None = None
    usage: Amounts = Field(default_factory=dict)


class ToolAnswered(RunEvent):
    """A result as it came.

    `truncated`: the result was cut, and `whole` is the SHA-256 of what was read of it. `status` 0: its
    protocol has no status.
    """

    kind: Literal["tool_answered"] = "tool_answered"
    effect: str
    observation: Hex
    size: int
    request_id: str = ""
    truncated: bool = False
    status: int = 0
    whole: str = ""


class ToolFailed(RunEvent):
    """A tool call without a usable result.

    `error` is one of: timeout, refused, crashed, malformed, unreachable, circuit_open, rate_limited,
    refused_by_wall, unauthorized, credential_expired. `sent` False means that the call certainly did not
    reach the tool. `answer` is the class of the answer; `look` is the result of a later look-up.
    """

    kind: Literal["tool_failed"] = "tool_failed"
    effect: str
    error: str
    sent: bool
    transient: bool
    detail: Hex | None = None
    retry_after_ms: int | None = None
    answer: Answer = Answer.NONE
    look: LookUpMiss = LookUpMiss.NOT_YET


class GateDecided(RunEvent):
    """A settled request.

    `decision` is one of: approve, edit, reject, revise, extend, happened, not_happened, cancel. `amounts`
    are what an extension grants.
    """

    kind: Literal["gate_decided"] = "gate_decided"
    request: str
    decision: str
    decision_digest: Hex
    by: str
    role: str
    packet_digest: Hex
    arguments: Hex | None = None
    reason: Hex | None = None
    amounts: Amounts = Field(default_factory=dict)


class GateExpired(RunEvent):
    kind: Literal["gate_expired"] = "gate_expired"
    request: str


class QuestionAnswered(RunEvent):
    kind: Literal["question_answered"] = "question_answered"
    request: str
    answer: Hex
    decision_digest: Hex
    by: str


class TimerFired(RunEvent):
    kind: Literal["timer_fired"] = "timer_fired"


class BudgetExtended(RunEvent):
    kind: Literal["budget_extended"] = "budget_extended"
    amounts: Amounts
    by: str


class CostCorrected(RunEvent):
    """A correction in the ledger of what an effect had cost (R-BUDGET-15).

    `delta` is the difference in US$, negative if the cost was lower. `more`: further events of the same
    correction follow.
    """

    kind: Literal["cost_corrected"] = "cost_corrected"
    effect: str
    delta: Decimal
    price_version: str
    by: str
    reason: str
    more: bool = False


class PriceCorrected(RunEvent):
    """A correction of a wrong price that the run is pinned to (R-BUDGET-15).

    Later requests of the run are charged at the new price. `models` are prices by the profile's name,
    `tools` by the tool's; `subject` names what the prices belong to; `was` and `price_version` are the
    wrong and the right version.
    """

    kind: Literal["price_corrected"] = "price_corrected"
    subject: str
    models: dict[str, ModelPrice] = Field(default_factory=dict)
    tools: dict[str, ToolPrice] = Field(default_factory=dict)
    was: str
    price_version: str
    by: str
    reason: str
    more: bool = False


class PolicyTightened(RunEvent):
    """A tool was disabled or raised in risk; it holds from the next call on (R-TOOL-4)."""

    kind: Literal["policy_tightened"] = "policy_tightened"
    tool: str
    disabled: bool
    risk: str | None = None


class Paused(RunEvent):
    kind: Literal["paused"] = "paused"
    by: str
    reason: str


class Resumed(RunEvent):
    kind: Literal["resumed"] = "resumed"
    by: str


class CancelAsked(RunEvent):
    kind: Literal["cancel_asked"] = "cancel_asked"
    by: str
    reason: str


class StopAsked(RunEvent):
    kind: Literal["stop_asked"] = "stop_asked"
    scope: Literal["global", "tenant", "workflow"]
    target: str
    reason: str


# The detail of a look-up's result begins with this text.
LOOKED: Final = "looked up"


class Recovered(RunEvent):
    """The recovery of an effect that was in flight when its worker died (docs/ring.md).

    repeated: the effect will be performed again under the same id; found: a look-up found it, and
    `observation` is the result; abandoned: it was certainly not sent; lost: a model call whose reply is
    gone; in_doubt: unknown. `detail` is the result of a look-up, if one was made; `unread` is the answer
    that could not be read.
    """

    kind: Literal["recovered"] = "recovered"
    effect: str
    resolution: Literal["repeated", "found", "abandoned", "lost", "in_doubt"]
    observation: Hex | None = None
    size: int = 0
    takeovers: int = 0
    detail: str = ""
    unread: UnreadAnswer | None = None


class LateAnswer(RunEvent):
    """An outcome that arrived after its run moved on or ended: recorded, changes nothing (G9)."""

    kind: Literal["late_answer"] = "late_answer"
    effect: str
    status: str
    observation: Hex | None = None


class EffectReconciled(RunEvent):
    """A person's decision on a change in doubt, made after the end of its run."""

    kind: Literal["effect_reconciled"] = "effect_reconciled"
    change: SentChange
    verdict: Literal["happened", "not_happened"]
    by: str
    reason: str = ""


class EffectLookedUp(RunEvent):
    """The result of a look-up that a person requested after the end of the run.

    `absent`: the tool calls its look-up conclusive, and the look-up did not find the change.
    """

    kind: Literal["effect_looked_up"] = "effect_looked_up"
    change: SentChange
    resolution: Literal["found", "absent", "unknown"]
    by: str
    observation: Hex | None = None
    size: int = 0
    detail: str = ""


AnyEvent = (
    Started
    | ModelReplied
    | ModelFailed
    | ToolAnswered
    | ToolFailed
    | GateDecided
    | GateExpired
    | QuestionAnswered
    | TimerFired
    | BudgetExtended
    | CostCorrected
    | PriceCorrected
    | PolicyTightened
    | Paused
    | Resumed
    | CancelAsked
    | StopAsked
    | Recovered
    | LateAnswer
    | EffectReconciled
    | EffectLookedUp
)
EVENT: TypeAdapter[AnyEvent] = TypeAdapter(Annotated[AnyEvent, Field(discriminator="kind")])


class Refusal(FrozenModel):
    """A reservation that the database refused in this commit: the dimension and what is left of it."""

    dimension: str
    limit: Decimal | None
    left: Decimal
    account: str


class Headroom(FrozenModel):
    """External facts that the core needs, read in this commit and recorded with it.

    `tenant_cost` is what is left of the tenant's ceilings in US$ (None: none set), `tenant_window` the one
    with less left, and `tenant_limit` its ceiling; `refused` and `void` are what this commit learnt from
    the database before it walked again; `open_circuits` and `stopped_tools` name tools; `raised_tools` are
    the risk classes that an admin has raised tools to; `unavailable` names tools for which the worker's
    machine lacks something, and what; `missing_scopes` are scopes that the submitter has lost since;
    `policy` is the newest one if it is not the pinned one and this commit is about to act; `busy` are keys
    of what other runs write to. `run_ceiling` is the tenant's ceiling per run, set if an extension was
    found to exceed it. `slice_over`: the worker's time with the run is up, so it is held before the next
    node that starts work. `called_up`: the model that the run waits for now accepts a call of it.
    """

    tenant_cost: Decimal | None = None
    tenant_window: Literal["", "tenant_day", "tenant_month"] = ""
    tenant_limit: Decimal | None = None
    refused: tuple[Refusal, ...] = ()
    void: dict[str, str] = Field(default_factory=dict)
    open_circuits: tuple[str, ...] = ()
    stopped_tools: tuple[str, ...] = ()
    raised_tools: dict[str, Risk] = Field(default_factory=dict)
    unavailable: dict[str, str] = Field(default_factory=dict)
    missing_scopes: tuple[str, ...] = ()
    policy: Policy | None = None
    busy: tuple[str, ...] = ()
    run_ceiling: Decimal | None = None
    slice_over: bool = False
    called_up: bool = False
