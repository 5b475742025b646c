"""The eighteen phases of an agent run, by number and name (R-LOOP-4)."""

from enum import IntEnum


class Phase(IntEnum):
    """A phase of the life cycle; the number orders it, the name is shown in every trace."""

    GOAL_INTAKE = 1
    SCOPE_RESOLUTION = 2
    POLICY_CHECK = 3
    STATE_INIT = 4
    PLAN_SELECTION = 5
    BUDGET_ASSIGNMENT = 6
    TOOL_ELIGIBILITY = 7
    ACTION_SELECTION = 8
    TOOL_INVOCATION = 9
    OBSERVATION_GROUNDING = 10
    STATE_UPDATE = 11
    VALIDATION = 12
    REFLECTION_TRIGGER = 13
    TERMINATION_CHECK = 14
    ESCALATION_CHECK = 15
    FINAL_RESPONSE = 16
    MEMORY_WRITE = 17
    TRACE_LOGGING = 18

    @property
    def label(self) -> str:
        """The name in lower case with underscores, as it stands in events and on pages."""
        return self.name.lower()
