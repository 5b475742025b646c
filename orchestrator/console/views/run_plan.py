"""The plan of a run as its page shows it: numbered steps, with dependent steps nested under others."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from orchestrator.console.queries.plans import Plan
from orchestrator.core.readmodel.run_plan import (
    CriterionState,
    PlanStep,
    RunPlan,
    ShownCriterion,
    StepStanding,
    select_step_window,
)

MOST: Final = 60
BEFORE: Final = 20
"""So many steps are drawn, and so many that are over before the first that is not: what came earlier is the
timeline's."""
NAMED: Final = 6
"""So many of the steps that one waits for are named by number."""
CHIPS: Final[Mapping[str, str]] = {"retry": "retrying", "resume": "paused", "claim": "held_up"}
"""The chip of a step that waits, where it does not wait for people."""
WHY: Final[Mapping[str, str]] = {
    "rejected": "A person said no.",
    "denied": "It may not be done here.",
    "unregistered": "There is no such tool.",
    "malformed": "Its arguments do not fit the tool.",
    "missing_info": "Information was missing.",
    "not_run": "The reply asked for more calls than one may.",
    "sent_back": "A person sent it back to be proposed anew.",
    "circuit_open": "The tool was not available.",
    "over_budget": "Its budget did not do.",
    "error": "It failed.",
    "no_fact": "No fact came of it.",
    "no_result": "It came to no result.",
    "refused": "The model declined.",
    "empty": "The model answered nothing.",
    "model_unavailable": "The model was not available.",
    "expired": "Nobody answered in time.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepNumber:
    """A step's number and the id of its element; the id is empty if the step is not shown."""

    number: int
    anchor: str


@dataclass(slots=True, kw_only=True)
class ShownStep:
    """A step with its number and its chip.

    `after` are the steps it depends on, and `more` is the number of those left out. `row` is the event of its
    call. `behind` are the steps shown under it, which depend on others.
    """

    step: PlanStep
    number: int
    chip: str
    why: str
    row: int | None
    after: tuple[StepNumber, ...]
    more: int
    behind: list["ShownStep"] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        """The id of the element that shows the step."""
        return f"step-{self.step.id}"


def build_plan_context(plan: Plan) -> dict[str, Any]:
    """Build the template context of the steps and the criteria."""
    steps = plan.outlook.steps
    begin, end = select_step_window(steps, MOST, BEFORE)
    return {
        "steps": _nest_plan_steps(plan, begin, end),
        "earlier_steps": begin,
        "later_steps": len(steps) - end,
        "counts": _count_steps_by_chip(plan.outlook),
        "plan_over": plan.outlook.over,
        "criteria": [
            (one, _get_criterion_chip(one, over=plan.outlook.over)) for one in plan.outlook.criteria
        ],
    }


def _nest_plan_steps(plan: Plan, begin: int, end: int) -> list[ShownStep]:
    """Build the steps from `begin` up to `end`, nested by dependency.

    A step with dependencies is nested under the last step without any.
    """
    steps = plan.outlook.steps
    number = {step.id: n for n, step in enumerate(steps, 1)}
    tops: list[ShownStep] = []
    for n in range(begin, end):
        step = steps[n]
        named = [number[one] for one in step.after]
        shown = ShownStep(
            step=step,
            number=n + 1,
            chip=_get_step_chip(step),
            why=WHY.get(step.why, step.why.replace("_", " ")),
            row=plan.rows.get(step.call),
            more=max(0, len(named) - NAMED),
            after=tuple(_build_step_link(steps, one, begin) for one in named[-NAMED:]),
        )
        (tops[-1].behind if step.after and tops else tops).append(shown)
    return tops


def _build_step_link(steps: tuple[PlanStep, ...], number: int, begin: int) -> StepNumber:
    anchor = f"step-{steps[number - 1].id}" if number > begin else ""
    return StepNumber(number=number, anchor=anchor)


def _get_step_chip(step: PlanStep) -> str:
    waits = step.standing is StepStanding.WAITING and step.wait is not None
    return CHIPS.get(step.wait.what, "waiting") if waits and step.wait else step.standing.value


def _get_criterion_chip(criterion: ShownCriterion, *, over: bool) -> str:
    """Return the chip of a criterion; while a run is under way, an unmet criterion is "not_yet"."""
    return "not_yet" if criterion.met is CriterionState.UNMET and not over else criterion.met.value


def _count_steps_by_chip(found: RunPlan) -> list[tuple[str, int]]:
    """Count the steps by chip."""
    counted: dict[str, int] = {}
    for step in found.steps:
        counted[_get_step_chip(step)] = counted.get(_get_step_chip(step), 0) + 1
    return list(counted.items())
