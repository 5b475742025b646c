"""Ready goals as they can be started now: each about something that no run was about before (R-UI-10). In the
tenant's context."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from orchestrator.bundled_content import Starter
from orchestrator.core.common.goal import Goal
from orchestrator.runs.models.run import Run

LOOKED_AT: Final = 5_000
"""So many of a workflow's newest runs are looked through: no index holds titles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedStarter:
    """A starter with the goal it would submit now; `used_up` is a sentence where none is left that was not
    submitted before."""

    starter: Starter
    goal: Goal
    used_up: str = ""


def list_offered_goals(starters: Iterable[Starter]) -> tuple[OfferedStarter, ...]:
    """These starters, in their order."""
    return tuple(map(_build_offered_goal, starters))


def _build_offered_goal(starter: Starter) -> OfferedStarter:
    goals = starter.goals()
    if starter.once is None:
        return OfferedStarter(starter=starter, goal=starter.goal)
    newest = Run.objects.filter(workflow=starter.workflow).order_by("-created_at", "-id")
    looked_at = newest.values("id")[:LOOKED_AT]
    asked = Run.objects.filter(id__in=looked_at, title__in=[goal.objective for goal in goals])
    used = set(asked.values_list("title", flat=True))
    left = next((goal for goal in goals if goal.objective not in used), None)
    if left is None:
        return OfferedStarter(starter=starter, goal=starter.goal, used_up=starter.once.used_up)
    return OfferedStarter(starter=starter, goal=left)
