"""Differences between two values: by line for texts, by pointer for other values."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any, NamedTuple

import orjson

from approvals.core.argument_diff import diff_json_values


class Line(NamedTuple):
    """A line of a text: kept, added or removed."""

    what: str
    text: str


class Entry(NamedTuple):
    """One place of a value with its content before and after; None means that the place did not exist."""

    pointer: str
    what: str
    before: str | None
    after: str | None


def diff_text_lines(before: str, after: str) -> list[Line]:
    """Merge both texts line by line, each line kept, removed or added."""
    old, new = before.splitlines(), after.splitlines()
    found: list[Line] = []
    for what, a, b, c, d in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if what == "equal":
            found += [Line("kept", text) for text in old[a:b]]
        else:
            found += [Line("removed", text) for text in old[a:b]]
            found += [Line("added", text) for text in new[c:d]]
    return found


def diff_json_entries(before: Any, after: Any) -> list[Entry]:
    """List the places that differ, in order."""
    return [
        Entry(
            change.pointer or "(all)", change.what,
            None if change.what == "added" else _format_value(change.before),
            None if change.what == "removed" else _format_value(change.after),
        )
        for change in diff_json_values(before, after)
    ]  # fmt: skip


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
