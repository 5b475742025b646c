"""The base of every event body (docs/trace-format.md): frozen, closed, versioned."""

from decimal import Decimal
from typing import Literal

from pydantic import BaseModel, ConfigDict

Amounts = dict[str, Decimal]


class TraceEventBody(BaseModel):
    """Content of one event. Subclasses name their kind."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    v: Literal[1] = 1
