"""Every kind of event a run's trace can hold: one frozen model each, one discriminated union (R-TRACE-1).

An event says what happened in digests, numbers and closed words; what came from outside stands in payloads
and is named here by its digest. Amounts are decimal strings in the canonical form. A field is added only with
a default, and a changed meaning takes a new version `v`, so that readers accept all ever written.
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from traces.core.events.budget_events import CostCorrected as CostCorrected
from traces.core.events.budget_events import CostThreshold as CostThreshold
from traces.core.events.budget_events import PriceCorrected as PriceCorrected
from traces.core.events.call_events import BreakerTripped as BreakerTripped
from traces.core.events.call_events import BudgetExtended as BudgetExtended
from traces.core.events.call_events import BudgetSettled as BudgetSettled
from traces.core.events.call_events import CallAnsweredNot as CallAnsweredNot
from traces.core.events.call_events import CallAttempted as CallAttempted
from traces.core.events.call_events import CallChecked as CallChecked
from traces.core.events.call_events import CallInDoubt as CallInDoubt
from traces.core.events.call_events import CallObserved as CallObserved
from traces.core.events.call_events import CallRecovered as CallRecovered
from traces.core.events.call_events import CallRequested as CallRequested
from traces.core.events.call_events import CallVerified as CallVerified
from traces.core.events.call_events import ConflictWaited as ConflictWaited
from traces.core.events.call_events import EffectLeftOpen as EffectLeftOpen
from traces.core.events.call_events import EffectSettled as EffectSettled
from traces.core.events.call_events import FactCommitted as FactCommitted
from traces.core.events.call_events import FailureCommitted as FailureCommitted
from traces.core.events.call_events import GroundingViolation as GroundingViolation
from traces.core.events.call_events import ParserDrifted as ParserDrifted
from traces.core.events.call_events import PlanRepaired as PlanRepaired
from traces.core.events.call_events import ReservationRefused as ReservationRefused
from traces.core.events.call_events import SafetyFound as SafetyFound
from traces.core.events.compensation_events import DeedLeft as DeedLeft
from traces.core.events.compensation_events import DeedUndone as DeedUndone
from traces.core.events.compensation_events import UnwindingBegan as UnwindingBegan
from traces.core.events.compensation_events import UnwindingEnded as UnwindingEnded
from traces.core.events.event_base import Amounts as Amounts
from traces.core.events.event_base import TraceEventBody as TraceEventBody

# -- the run's life ----------------------------------------------------------------------------------------


class TaskSubmitted(TraceEventBody):
    kind: Literal["task_submitted"] = "task_submitted"
    task: str
    workflow: str
    workflow_version: int
    graph: str
    manifest: str
    boundary: str
    goal: str
    mode: str
    principal: str
    scripted: bool = False


class RunStarted(TraceEventBody):
    kind: Literal["run_started"] = "run_started"


class RunRetried(TraceEventBody):
    """This run begins after record `record`, whose hash is `record_hash`, of the run `run`, which had ended;
    `origin` is the first run of the line (R-SESS-9)."""

    kind: Literal["run_retried"] = "run_retried"
    run: str
    record: int
    record_hash: str
    origin: str
    by: str
    reason: str = ""


class RunSuspended(TraceEventBody):
    kind: Literal["run_suspended"] = "run_suspended"
    awaiting: str
    reference: str = ""


class RunResumed(TraceEventBody):
    kind: Literal["run_resumed"] = "run_resumed"
    cause: str


class RunPaused(TraceEventBody):
    kind: Literal["run_paused"] = "run_paused"
    reason: str
    by: str = ""


class CancelAsked(TraceEventBody):
    kind: Literal["cancel_asked"] = "cancel_asked"
    by: str
    reason: str = ""


class StopAsked(TraceEventBody):
    """An emergency stop reached this run (R-SEC-9)."""

    kind: Literal["stop_asked"] = "stop_asked"
    scope: str
    target: str = ""
    reason: str = ""


class InterruptTaken(TraceEventBody):
    kind: Literal["interrupt_taken"] = "interrupt_taken"
    interrupt: str
    reason: str
    node: str
    target: str


class RunFinished(TraceEventBody):
    kind: Literal["run_finished"] = "run_finished"
    terminal_code: str
    terminal_class: str
    status: str
    reason: str = ""
    result: str | None = None
    sentence: str = ""


class PhaseSkipped(TraceEventBody):
    kind: Literal["phase_skipped"] = "phase_skipped"
    reason: str


class PhaseNoted(TraceEventBody):
    """A phase was passed and hands on its artifact; `digest` points to where that is stored."""

    kind: Literal["phase_noted"] = "phase_noted"
    artifact: str
    detail: str = ""
    digest: str | None = None


class PolicyDecided(TraceEventBody):
    kind: Literal["policy_decided"] = "policy_decided"
    rule: str
    decision: Literal["allow", "deny"]
    boundary: str
    detail: str = ""


class BudgetAssigned(TraceEventBody):
    kind: Literal["budget_assigned"] = "budget_assigned"
    limits: Amounts


# -- models ------------------------------------------------------------------------------------------------


class ModelCalled(TraceEventBody):
    kind: Literal["model_called"] = "model_called"
    effect: str
    role: str
    profile: str
    request: str
    attempt: int
    max_output_tokens: int


class ModelReplied(TraceEventBody):
    kind: Literal["model_replied"] = "model_replied"
    effect: str
    reply: str
    shape: Literal["answer", "requests", "refusal", "empty"]
    calls: int
    finish: str
    usage: Amounts
    counted: Literal["provider", "estimated"] = "provider"


class ModelFailed(TraceEventBody):
    kind: Literal["model_failed"] = "model_failed"
    effect: str
    error: str
    transient: bool
    detail: str | None = None


class ModelFailedOver(TraceEventBody):
    """Another profile plays the role from here on, since `profile` could not be asked (R-TOOL-22)."""

    kind: Literal["model_failed_over"] = "model_failed_over"
    effect: str
    profile: str
    to: str
    reason: str
    attempts: int


class ModelAwaited(TraceEventBody):
    """The run waits for a model that cannot be asked just now (R-TOOL-22): `since` when, `until` when at the
    latest (empty: its deadline alone), and `by` what ends the wait: a timer, the model's circuit, or the line
    in front of it."""

    kind: Literal["model_awaited"] = "model_awaited"
    effect: str
    profile: str
    cause: str
    by: Literal["timer", "circuit", "line"]
    since: str
    until: str = ""


class RetryScheduled(TraceEventBody):
    kind: Literal["retry_scheduled"] = "retry_scheduled"
    effect: str
    attempt: int
    delay_ms: int
    cause: str


# -- people ------------------------------------------------------------------------------------------------


class ApprovalRequested(TraceEventBody):
    kind: Literal["approval_requested"] = "approval_requested"
    request: str
    request_kind: str
    call: str = ""
    packet: str
    packet_digest: str
    action_digest: str = ""
    quorum: int
    queue: str
    expires_at: str


class ApprovalDecided(TraceEventBody):
    kind: Literal["approval_decided"] = "approval_decided"
    request: str
    decision: str
    decision_digest: str
    by: str
    role: str
    packet_digest: str
    arguments: str | None = None


class ApprovalExpired(TraceEventBody):
    kind: Literal["approval_expired"] = "approval_expired"
    request: str


class ApprovalWithdrawn(TraceEventBody):
    kind: Literal["approval_withdrawn"] = "approval_withdrawn"
    request: str
    reason: str


class QuestionAnswered(TraceEventBody):
    kind: Literal["question_answered"] = "question_answered"
    request: str
    answer: str
    by: str


# -- the answer --------------------------------------------------------------------------------------------


class OutputDrafted(TraceEventBody):
    kind: Literal["output_drafted"] = "output_drafted"
    draft: str


class OutputVerified(TraceEventBody):
    kind: Literal["output_verified"] = "output_verified"
    draft: str
    level: int
    validator: str
    method: Literal["deterministic", "model"]
    verdict: Literal["passed", "failed", "needs_review", "rejected"]
    detail: str = ""


class ResultFinalized(TraceEventBody):
    kind: Literal["result_finalized"] = "result_finalized"
    result: str
    content_digest: str
    partial: bool


class CompletionChecked(TraceEventBody):
    kind: Literal["completion_checked"] = "completion_checked"
    verdict: str
    met: int
    of: int
    detail: str = ""


# -- the closed set that may follow the terminal record ----------------------------------------------------


class LateOutcome(TraceEventBody):
    kind: Literal["late_outcome"] = "late_outcome"
    effect: str
    status: str
    observation: str | None = None


class Reconciled(TraceEventBody):
    kind: Literal["reconciled"] = "reconciled"
    effect: str
    verdict: Literal["happened", "not_happened", "cancel"]
    by: str
    reason: str = ""


class PayloadErased(TraceEventBody):
    kind: Literal["payload_erased"] = "payload_erased"
    payloads: int
    by: str
    reason: str


class DecisionRefused(TraceEventBody):
    kind: Literal["decision_refused"] = "decision_refused"
    request: str
    by: str
    reason: str


AnyBody = (
    TaskSubmitted | RunStarted | RunSuspended | RunResumed | RunPaused | CancelAsked | StopAsked
    | InterruptTaken | RunFinished | PhaseSkipped | PhaseNoted | PolicyDecided
    | BudgetAssigned | ModelCalled | ModelReplied | ModelFailed | RetryScheduled | CallRequested
    | CallChecked | CallAnsweredNot | CallAttempted | CallObserved | CallVerified | FactCommitted
    | FailureCommitted | CallInDoubt | CallRecovered | GroundingViolation | ReservationRefused
    | BudgetSettled | BudgetExtended | BreakerTripped | ApprovalRequested | ApprovalDecided
    | ApprovalExpired | ApprovalWithdrawn | QuestionAnswered | OutputDrafted
    | OutputVerified | ResultFinalized | CompletionChecked | LateOutcome | Reconciled
    | PayloadErased | DecisionRefused | CostThreshold | CostCorrected | UnwindingBegan
    | DeedUndone | DeedLeft | UnwindingEnded | ParserDrifted | PlanRepaired | ConflictWaited
    | SafetyFound | PriceCorrected | ModelFailedOver | RunRetried | EffectLeftOpen | EffectSettled
    | ModelAwaited
)  # fmt: skip
EventBody = Annotated[AnyBody, Field(discriminator="kind")]
BODY: TypeAdapter[AnyBody] = TypeAdapter(EventBody)
