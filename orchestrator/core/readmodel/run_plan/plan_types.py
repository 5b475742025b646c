"""The types of a run plan and of its inputs."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Literal, NamedTuple

from orchestrator.core.common.frozen_model import FrozenModel, Small


class StepStanding(StrEnum):
    """The standing of a step: over (the first four), in progress, still to come, or skipped."""

    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"
    IN_DOUBT = "in_doubt"
    UNDER_WAY = "under_way"
    WAITING = "waiting"
    READY = "ready"
    BEHIND = "behind"
    AHEAD = "ahead"
    LEFT_OUT = "left_out"


For = Literal["decision", "verdict", "answer", "budget", "resume", "retry", "claim"]
"""What a step may wait for: people's decision on it, their word on whether it happened, an answer, more
budget, somebody who resumes the run, the time of the next attempt, another run that writes to the same
thing."""


class Wait(FrozenModel):
    """The thing that a step waits for: its kind and the open request.

    `until` is when the request expires, or when the step is tried again.
    """

    what: For
    request: str = ""
    until: datetime | None = None


class PlanStep(FrozenModel):
    """One step. `id` identifies it as long as it is in the plan.

    `name` is the tool, as it was requested, or the node of a model's turn or of a question. `by` is the
    requester: a node, `model`, or `undo` for a call that undoes a change. `why` is a closed code for how the
    step ended. `after` are the ids of the unfinished steps that come before it; if the graph has several ways
    to the step, one of them does. `gated`: people decide before the call is sent, as the tool is pinned.
    `became`: a change that was undone, or left to people.
    """

    id: str
    kind: Literal["call", "model", "question"]
    name: str
    by: str
    node: str = ""
    call: str = ""
    fact: str = ""
    standing: StepStanding
    why: str = ""
    wait: Wait | None = None
    after: tuple[str, ...] = ()
    gated: bool = False
    became: Literal["", "undone", "left"] = ""


class CriterionState(StrEnum):
    """The state of a criterion: met or unmet at the last check, or not checked yet."""

    MET = "met"
    UNMET = "unmet"
    OPEN = "open"


class ShownCriterion(FrozenModel):
    """One acceptance criterion: a named validator with its parameters, its owner, and its state."""

    validator: str
    parameters: Mapping[str, Small]
    of: Literal["goal", "workflow"]
    met: CriterionState
    node: str = ""


class RunPlan(FrozenModel):
    """The steps, each after all steps that it depends on, and the criteria."""

    steps: tuple[PlanStep, ...]
    criteria: tuple[ShownCriterion, ...] = ()
    over: bool = False


class Move(NamedTuple):
    """A transition, as recorded; the admission's has no source."""

    source: str
    outcome: str
    target: str


class TracedCall(NamedTuple):
    """A call from the trace since the newest reply; the state of an interrupted run no longer holds it.

    `by` is `model`, `node` or `undo`. `sent`: an attempt was made. `status`: the status of the answer, empty
    if there was none.
    """

    call: str
    tool: str
    by: str
    sent: bool = False
    status: str = ""


class CheckFinding(NamedTuple):
    """The finding of the newest check of a draft or of completion."""

    validator: str
    detail: str
