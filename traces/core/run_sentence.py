"""One-sentence summary of a run (R-GRAPH-18).

The sentence says what the run might do, its path, what it called, spent and found, and what ended it or what
it waits for.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from pydantic import BaseModel, ConfigDict

from traces.core.canonical import format_decimal

MOST = 8


class SentenceFacts(BaseModel):
    """The input of the sentence.

    `ceiling` and `spent` are USD; a ceiling of None means no ceiling. `path` contains node ids in the order
    of execution, `calls` the number of calls by tool, `facts` ids. `terminal_code` is None while the run is
    active; `waiting_for` is then what the run waits for, or empty.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    workflow: str
    tools_allowed: tuple[str, ...]
    ceiling: Decimal | None
    path: tuple[str, ...]
    calls: Mapping[str, int]
    spent: Decimal
    facts: tuple[str, ...]
    status: str
    terminal_code: str | None = None
    reason: str = ""
    waiting_for: str = ""


def format_run_sentence(facts: SentenceFacts) -> str:
    """Return the sentence, in plain words and of bounded length. Pure: equal facts give an equal text."""
    return (
        f"Allowed to use {_format_names(facts.tools_allowed, 'no tool')} {_format_ceiling(facts.ceiling)}, "
        f"{facts.workflow} {_format_path(facts.path)}, called {_format_calls(facts.calls)}, "
        f"spent ${format_decimal(facts.spent)}, committed {_format_names(facts.facts, 'no fact')}, and "
        f"{_format_ending(facts)}."
    )


def compress_path(path: Sequence[str]) -> tuple[str, ...]:
    """Return a path in which each repetition is listed once with its count: `a, b (3 times)`."""
    out: list[str] = []
    at = 0
    while at < len(path):
        width, times = _find_repetition(path, at)
        shown = ", ".join(path[at : at + width])
        out.append(f"{shown} ({times} times)" if times > 1 else shown)
        at += width * times
    return tuple(out)


def _find_repetition(path: Sequence[str], at: int) -> tuple[int, int]:
    """Return width and count of the repetition that covers most of the path from `at`."""
    best = (1, 1)
    for width in range(1, min(MOST, (len(path) - at) // 2) + 1):
        unit = path[at : at + width]
        times = 1
        while path[at + width * times : at + width * (times + 1)] == unit:
            times += 1
        if times > 1 and width * times > best[0] * best[1]:
            best = (width, times)
    return best


def _format_ceiling(ceiling: Decimal | None) -> str:
    return "without a cost ceiling" if ceiling is None else f"for at most ${format_decimal(ceiling)}"


def _format_path(path: Sequence[str]) -> str:
    if not path:
        return "has not moved yet"
    stations = compress_path(path)
    if len(stations) > MOST:
        half = MOST // 2
        skipped = len(stations) - 2 * half
        stations = (*stations[:half], f"… {skipped} more …", *stations[-half:])
    return "went " + " → ".join(stations)


def _format_calls(calls: Mapping[str, int]) -> str:
    made = [
        f"{tool} {calls[tool]} times" if calls[tool] > 1 else tool for tool in sorted(calls) if calls[tool]
    ]
    return _format_names(made, "nothing")


def _format_names(names: Sequence[str], none: str) -> str:
    if not names:
        return none
    shown = list(names[:MOST])
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _format_ending(facts: SentenceFacts) -> str:
    # A reason is often a complete sentence; the only full stop is added at the end.
    reason = facts.reason.rstrip(". ")
    because = f": {reason}" if reason else ""
    if facts.terminal_code is not None:
        return f"ended {facts.status} with {facts.terminal_code}{because}"
    if facts.waiting_for:
        return f"waits for {facts.waiting_for}{because}"
    return f"is {facts.status}{because}"
