"""How often a minute: a window of small counts, never a list of every call (R-TOOL-5, R-BUDGET-17).

A window maps the number of a slot (whole seconds divided by `grain`) to the calls begun in it. A slot counts
until its last moment is a whole span ago, so that no minute anywhere holds more than the rate; what is older
is dropped with the next call.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

Window = Mapping[str, int]
GRAIN = 5
SPAN = 60
EMPTY: Window = {}


def wait_for(window: Window, rate: int, now: int, *, grain: int = GRAIN, span: int = SPAN) -> int:
    """Whole seconds until one more call is within `rate` calls a span; 0: now. `now` in seconds."""
    kept = sorted(
        (int(slot), count) for slot, count in window.items() if _compute_slot_expiry(slot, grain, span) > now
    )
    taken, wait = sum(count for _, count in kept), 0
    for slot, count in kept:
        if taken < rate:
            break
        taken, wait = taken - count, _compute_slot_expiry(slot, grain, span) - now
    return wait


def with_counted_call(window: Window, now: int, *, grain: int = GRAIN, span: int = SPAN) -> Window:
    """The window with one more call at `now`, less what is too old: at most span / grain + 2 of them."""
    kept = {slot: count for slot, count in window.items() if _compute_slot_expiry(slot, grain, span) > now}
    slot = str(now // grain)
    return {**kept, slot: kept.get(slot, 0) + 1}


def with_call(rates: Mapping[str, Window], tool: str, at: datetime) -> Mapping[str, Window]:
    """The windows of a run's tools with one more call of `tool`."""
    return {**rates, tool: with_counted_call(rates.get(tool, EMPTY), to_epoch_seconds(at))}


def free_at(rates: Mapping[str, Window], tool: str, rate: int, at: datetime) -> datetime | None:
    """When `tool` may be called again, to the second; None: it may be called at `at`."""
    wait = wait_for(rates.get(tool, EMPTY), rate, to_epoch_seconds(at))
    return at.replace(microsecond=0) + timedelta(seconds=wait) if wait else None


def to_epoch_seconds(at: datetime) -> int:
    """Whole seconds since 1970."""
    return int(at.timestamp())


def _compute_slot_expiry(slot: str | int, grain: int, span: int) -> int:
    """When the calls of a slot are surely a span ago."""
    return (int(slot) + 1) * grain + span
