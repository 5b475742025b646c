"""Events about a run that takes back what it did before it ends without its result (R-TOOL-15)."""

from typing import Literal

from traces.core.events.event_base import TraceEventBody


class UnwindingBegan(TraceEventBody):
    """A run that did `deeds` things is on its way to an end without a result. `mode` is its boundary's."""

    kind: Literal["unwinding_began"] = "unwinding_began"
    terminal_code: str
    deeds: int
    mode: Literal["ask", "automatic", "report"]


class DeedUndone(TraceEventBody):
    """The action of `call` was taken back by the call `by`; `wanted` is the end that now holds."""

    kind: Literal["deed_undone"] = "deed_undone"
    call: str
    tool: str
    by: str
    undone_by: str
    wanted: str


class DeedLeft(TraceEventBody):
    """The action of `call` stands, and somebody has to see to it by hand; `why` is a closed word."""

    kind: Literal["deed_left"] = "deed_left"
    call: str
    tool: str
    why: str
    detail: str = ""


class UnwindingEnded(TraceEventBody):
    kind: Literal["unwinding_ended"] = "unwinding_ended"
    undone: int
    left: int
