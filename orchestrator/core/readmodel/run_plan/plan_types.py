"""What a plan is made of, and what it is made from."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Literal, NamedTuple

from orchestrator.core.common.frozen_model import FrozenModel, Small


class StepStanding(StrEnum):
    """How a step stands: over (the first four), on its way, before the run, or not to come any more."""

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
    """What a step waits for: the open request, and when that ends, or when it is tried again."""

    what: For
    request: str = ""
    until: datetime | None = None


class PlanStep(FrozenModel):
    """One step. `id` names it for as long as it is in the plan.

    `name` is the tool, as it was asked for, or the node of a model's turn or of a question. `by` is who
    asked: a node, `model`, or `undo` for what takes something back. `why` is a closed word for how it ended.
    `after` are the ids of the steps that are not over and come before it; where a graph has several ways to
    it, one of them does. `gated`: people decide before it is sent, as the tool is pinned. `became`: a change
    that was taken back, or left to people.
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


class Met(StrEnum):
    """Whether a criterion holds: it did when it was last looked at, it did not, or nobody has looked yet."""

    MET = "met"
    UNMET = "unmet"
    OPEN = "open"


class ShownCriterion(FrozenModel):
    """One acceptance criterion: a named validator with its parameters, whose it is, and how it stands."""

    validator: str
    parameters: Mapping[str, Small]
    of: Literal["goal", "workflow"]
    met: Met
    node: str = ""


class RunPlan(FrozenModel):
    """Steps in an order in which each stands behind all that it comes after, and the criteria."""

    steps: tuple[PlanStep, ...]
    criteria: tuple[ShownCriterion, ...] = ()
    over: bool = False


class Move(NamedTuple):
    """A transition, as its record has it; the admission's comes from nowhere."""

    source: str
    outcome: str
    target: str


class Asked(NamedTuple):
    """A call as the trace has it since the newest reply: the state of a run that was cut off holds it no
    more. `by` is `model`, `node` or `undo`; `sent` says whether an attempt was made, `status` with what it
    was answered: empty where it was not."""

    call: str
    tool: str
    by: str
    sent: bool = False
    status: str = ""


class Said(NamedTuple):
    """What the newest check of a draft or of completion said."""

    validator: str
    detail: str
