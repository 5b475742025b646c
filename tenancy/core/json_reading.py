"""JSON that others wrote: readers differ in which of two members of one name they take, so what was looked at
would not be what is done (R-SEC-11)."""

import json
import re
from typing import Any, Final

import orjson

DEEPEST: Final = 256
# A bracket, or a text whose brackets are none.
_MARK: Final = re.compile(rb'[][{}]|"(?:[^"\\]|\\.)*"', re.DOTALL)


class MemberRepeated(orjson.JSONDecodeError):
    """An object has the member `name` more than once; for whoever reads JSON this is none."""

    def __init__(self, name: str) -> None:
        self.name = name[:100]
        super().__init__(f"The member {json.dumps(self.name)} is given more than once.", "", 0)


def read_json(body: bytes | str) -> Any:
    """The value of a JSON text in which no object has a member twice. Raises JSONDecodeError, of which
    MemberRepeated is one."""
    value = orjson.loads(body)
    check_members(body)
    return value


def check_members(body: bytes | str) -> None:
    """Look for an object that has a member twice, in what is JSON. Raises MemberRepeated, and JSONDecodeError
    for what is nested too deep to be looked through, wherever it is read."""
    text = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else bytes(body)
    if _measure_depth(text) > DEEPEST:
        raise orjson.JSONDecodeError(f"It is nested deeper than {DEEPEST}.", "", 0)
    # Numbers are left as text: here only names are looked at.
    json.loads(text, object_pairs_hook=_check_unique_members, parse_int=str, parse_float=str)


def _measure_depth(text: bytes) -> int:
    deepest = depth = 0
    for mark in _MARK.finditer(text):
        if (sign := mark[0]) in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in b"]}":
            depth -= 1
    return deepest


def _check_unique_members(pairs: list[tuple[str, Any]]) -> None:
    found: set[str] = set()
    for name, _ in pairs:
        if name in found:
            raise MemberRepeated(name)
        found.add(name)
