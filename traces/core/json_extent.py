"""How far a JSON value reaches in a text that may not be all there."""

import re

_SCALAR = re.compile(r"[^\s,\]}]*+")
_NESTING = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)


def value_end(text: str, start: int) -> int:
    """Where the JSON value that begins at `start`, and is no string, ends; -1 where its end is not there."""
    if text[start] not in "[{":
        scalar = _SCALAR.match(text, start)
        return -1 if scalar is None else scalar.end()
    depth = 0
    for found in _NESTING.finditer(text, start):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if depth == 0:
            return found.end()
    return -1
