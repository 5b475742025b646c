"""What a run has done, does, and has before it, each step with what it waits for (R-UI-3, R-GRAPH-19).

No plan is written down: the steps are the queue of requested calls, the calls and drafts that lie ahead in
the graph, and what came of those that are over. The rules are those by which the machine takes up work.
"""

from orchestrator.core.readmodel.run_plan.call_steps import carried_calls
from orchestrator.core.readmodel.run_plan.criteria import criteria_of
from orchestrator.core.readmodel.run_plan.plan_types import (
    Asked,
    Met,
    Move,
    PlanStep,
    RunPlan,
    Said,
    ShownCriterion,
    StepStanding,
    Wait,
)
from orchestrator.core.readmodel.run_plan.steps import build_run_plan, select_step_window

__all__ = [
    "Asked",
    "Met",
    "Move",
    "PlanStep",
    "RunPlan",
    "Said",
    "ShownCriterion",
    "StepStanding",
    "Wait",
    "build_run_plan",
    "carried_calls",
    "criteria_of",
    "select_step_window",
]
