"""What differs between two values: by line for texts, by pointer for everything else."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any, NamedTuple

import orjson

from approvals.core.argument_diff import changes


class Line(NamedTuple):
    """A line of a text: kept, added or removed."""

    what: str
    text: str


class Entry(NamedTuple):
    """A place of a value with what stood there and what stands there; None: nothing did."""

    pointer: str
    what: str
    before: str | None
    after: str | None


def lines(before: str, after: str) -> list[Line]:
    """Both texts as one, line by line."""
    old, new = before.splitlines(), after.splitlines()
    found: list[Line] = []
    for what, a, b, c, d in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if what == "equal":
            found += [Line("kept", text) for text in old[a:b]]
        else:
            found += [Line("removed", text) for text in old[a:b]]
            found += [Line("added", text) for text in new[c:d]]
    return found


def entries(before: Any, after: Any) -> list[Entry]:
    """The places that differ, in order."""
    return [
        Entry(
            change.pointer or "(all)", change.what,
            None if change.what == "added" else _shown(change.before),
            None if change.what == "removed" else _shown(change.after),
        )
        for change in changes(before, after)
    ]  # fmt: skip


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
