"""clock.now: the time, in UTC and in a named zone (R-TOOL-19)."""

from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import Field

from orchestrator.core.domain.tool_spec import Reversibility, Risk
from orchestrator.outbound.gateways.monotonic_clock import wall_now
from orchestrator.tools.gateways.egress.service_client import CallFailed
from orchestrator.tools.gateways.registry import ToolResult, tool


class Now(ToolResult):
    """One moment, written twice; `weekday` is the zone's."""

    utc: str
    local: str
    zone: str
    weekday: str


@tool(
    name="clock.now",
    category="lookup",
    capability="time",
    risk=Risk.READ_ONLY,
    reversibility=Reversibility.PURE,
    trust="trusted",
    parallel_safe=True,
    rate_per_minute=6_000,
    timeout_ms=1_000,
    facts={"utc": "/utc", "local": "/local", "zone": "/zone"},
)
def get_current_time(zone: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_+\-/]{0,63}$")] = "UTC") -> Now:
    """The current time in UTC and in a named zone, such as Europe/Berlin (UTC where none is named)."""
    try:
        place = ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise CallFailed("refused", sent=True, detail=f"there is no time zone {zone}".encode()) from None
    moment = wall_now().replace(microsecond=0)
    there = moment.astimezone(place)
    return Now(
        utc=moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        local=there.isoformat(),
        zone=zone,
        weekday=there.strftime("%A"),
    )
