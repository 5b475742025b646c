"""The result of authorizing one call: its verdict and its trace entries."""

from dataclasses import dataclass
from typing import Literal

from orchestrator.core.domain.run_state import Call
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.workflow.node_protocol import RefusedEffect
from traces.core.integrity.chain import TraceEntry

CallVerdict = Literal[
    "eligible", "malformed", "missing_info", "unregistered", "needs_approval", "denied", "over_budget"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorization:
    """The result for one call; `call` has normalised arguments from the second question on."""

    call: Call
    verdict: CallVerdict
    detail: str
    said: tuple[TraceEntry, ...]
    spec: ToolSpec | None = None
    refused: RefusedEffect | None = None
    missing: tuple[str, ...] = ()
    unauthorized: bool = False
