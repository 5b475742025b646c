"""How often a JSON Schema is applied to one and the same value (R-SEC-11).

Two references at each of forty steps are a short text and 2^40 applications, during which the process does
nothing else. Applications to what is within the value are not counted: their number depends on the value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

MOST: Final = 10_000
DEEPEST: Final = 200
_ONE: Final = ("not", "if", "then", "else")
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_MAPS: Final = ("dependentSchemas", "dependencies")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_Place = Mapping[str, Any]


def cost_fault(schema: _Place) -> str | None:
    """Why a schema costs too much to be used; None where it does not."""
    costs = _Costs(schema)
    try:
        cost = max(costs.cost_of(part, 0) for part in costs.parts)
    except _Endless as fault:
        return str(fault)
    return None if cost <= MOST else f"parts of it are applied to one value more than {MOST} times"


class _Endless(Exception):
    """A schema comes back to itself without a step into the value, or only after very many steps."""


class _Costs:
    """The costs of a schema's parts, each counted once."""

    def __init__(self, root: _Place) -> None:
        self.parts: list[_Place] = []
        self._resources: list[_Place] = [root]
        self._anchors: dict[str, list[_Place]] = {}
        self._known: dict[int, int | None] = {}
        self._collect(root)

    def _collect(self, root: _Place) -> None:
        waiting: list[Any] = [root]
        while waiting:
            one = waiting.pop()
            if isinstance(one, list):
                waiting.extend(one)
            elif isinstance(one, Mapping):
                self.parts.append(one)
                waiting.extend(one.values())
                if any(isinstance(one.get(name), str) for name in ("$id", "id")) and one is not root:
                    self._resources.append(one)
                for name in ("$anchor", "$dynamicAnchor", "$id", "id"):
                    if isinstance(anchor := one.get(name), str):
                        self._anchors.setdefault(anchor.lstrip("#"), []).append(one)

    def cost_of(self, part: Any, depth: int) -> int:
        """How many schemas are applied where this one is. Raises _Endless."""
        if not isinstance(part, Mapping):
            return 1
        if depth > DEEPEST:
            raise _Endless(f"its references are chained over more than {DEEPEST} steps")
        if id(part) in self._known:
            if (known := self._known[id(part)]) is None:
                raise _Endless("it refers to itself at one place")
            return known
        self._known[id(part)] = None
        costs = [self.cost_of(one, depth + 1) for one in _applied(part)]
        for name in _REFERENCES:
            if isinstance(reference := part.get(name), str):
                found = self._named(reference)
                costs.append(max((self.cost_of(one, depth + 1) for one in found), default=1))
        # Large numbers are of no use, and take long to add.
        self._known[id(part)] = cost = min(1 + sum(costs), MOST + 1)
        return cost

    def _named(self, reference: str) -> list[_Place]:
        """What a reference may mean: every part of that name, whatever the address before it."""
        address, _, fragment = reference.partition("#")
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            return self._anchors.get(fragment, [])
        last = address.rpartition("/")[2].rpartition(":")[2]
        among = [one for one in self._resources if not address or _id_of(one).endswith(last)]
        return [found for one in among if (found := _at(one, fragment)) is not None]


def _id_of(part: _Place) -> str:
    found = part.get("$id", part.get("id", ""))
    return found.rstrip("#") if isinstance(found, str) else ""


def _applied(part: _Place) -> Iterator[Any]:
    yield from (part[name] for name in _ONE if name in part)
    for name in _LISTS:
        if isinstance(part.get(name), list):
            yield from part[name]
    for name in _MAPS:
        if isinstance(part.get(name), Mapping):
            yield from part[name].values()


def _at(resource: _Place, pointer: str) -> Any:
    """What stands at a JSON pointer; None where nothing does, or no schema."""
    found: Any = resource
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            found = found.get(name)
        elif isinstance(found, list) and name.isdecimal() and len(name) < 9 and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    return found if isinstance(found, Mapping) else None
