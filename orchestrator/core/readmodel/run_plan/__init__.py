"""The plan of a run: past, current and future steps, each with what it waits for.

No plan is stored. The steps are the queue of requested calls, the calls and drafts that lie ahead in the
graph, and the results of finished steps. The rules are the ones by which the engine takes up work.

Spec: R-UI-3, R-GRAPH-19.
"""

from orchestrator.core.readmodel.run_plan.call_steps import carried_calls
from orchestrator.core.readmodel.run_plan.criteria import criteria_of
from orchestrator.core.readmodel.run_plan.plan_types import (
    CheckFinding,
    CriterionState,
    Move,
    PlanStep,
    RunPlan,
    ShownCriterion,
    StepStanding,
    TracedCall,
    Wait,
)
from orchestrator.core.readmodel.run_plan.steps import build_run_plan, select_step_window

__all__ = [
    "CheckFinding",
    "CriterionState",
    "Move",
    "PlanStep",
    "RunPlan",
    "ShownCriterion",
    "StepStanding",
    "TracedCall",
    "Wait",
    "build_run_plan",
    "carried_calls",
    "criteria_of",
    "select_step_window",
]
