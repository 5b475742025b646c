"""The goal of a task (R-GRAPH-13)."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import Field

from orchestrator.core.common.frozen_model import FrozenModel, Small, Text


class Mode(StrEnum):
    """How long a client intends to wait."""

    INTERACTIVE = "interactive"
    ASYNC = "async"
    LONG_RUNNING = "long_running"


class Criterion(FrozenModel):
    """One acceptance criterion: a named validator with its parameters (see `core/validators`)."""

    validator: str = Field(max_length=64)
    parameters: dict[str, Small] = Field(default_factory=dict)


class Goal(FrozenModel):
    """The goal object.

    Texts are bounded. `inputs` and `output_schema` are JSON from the client, bounded where requests are
    parsed.
    """

    objective: Text = Field(min_length=1)
    acceptance: tuple[Criterion, ...] = Field(default=(), max_length=50)
    constraints: tuple[Text, ...] = Field(default=(), max_length=50)
    inputs: dict[str, Any] = Field(default_factory=dict)
    output_schema: dict[str, Any] | None = None
    done_condition: Text = ""
    validation_method: Text = ""
    stop_rules: tuple[Text, ...] = Field(default=(), max_length=20)
    deadline: datetime | None = None
    mode: Mode = Mode.ASYNC
    requires_human_approval: bool = False
