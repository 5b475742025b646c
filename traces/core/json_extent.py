"""Find the end of a JSON value in a text that may be incomplete."""

import re

_SCALAR = re.compile(r"[^\s,\]}]*+")
_NESTING = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)


def value_end(text: str, start: int) -> int:
    """Return the end of the JSON value that begins at `start` and is no string; -1 if it is incomplete."""
    if text[start] not in "[{":
        scalar = _SCALAR.match(text, start)
        return -1 if scalar is None else scalar.end()
    depth = 0
    for found in _NESTING.finditer(text, start):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if depth == 0:
            return found.end()
    return -1
