"""Count how often a JSON Schema is applied to one value and to the values within it (R-SEC-11).

With two references at each of forty steps, a short schema is applied 2^40 times to the same value, which
blocks the process: such a schema is refused. A schema that applies itself twice to one child is applied 2^30
times at a depth of thirty: its cost on a value is counted before that value is validated. Patterns of
property names are assumed to match every name: they are not run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

import jsonschema_rs

MOST: Final = 10_000
DEEPEST: Final = 200
MOST_APPLIED: Final = 10_000_000
MOST_EXPLAINED: Final = 2_000
"""An error names all that it came from, which takes thousands of times as long as the answer itself."""
TOO_DEEP: Final = "nested too deep for this schema"
_OTHER: Final = -1
_OTHER_ITEMS: Final = ("items", "additionalItems", "contains", "unevaluatedItems")
_Counts = Counter[int]
_ONE: Final = ("not", "if", "then", "else")
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_MAPS: Final = ("dependentSchemas", "dependencies")
REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_Place = Mapping[str, Any]


def cost_fault(schema: _Place) -> str | None:
    """Return why a schema is too expensive to be used, or None if it is not."""
    costs = _Costs(schema)
    try:
        cost = max(costs.cost_of(part, 0) for part in costs.parts)
    except _Endless as fault:
        return str(fault)
    return None if cost <= MOST else f"parts of it are applied to one value more than {MOST} times"


class _Endless(Exception):
    """A schema comes back to itself without a step into the value, or only after very many steps."""


class Parts:
    """The parts of a schema, indexed by the references to them."""

    def __init__(self, root: _Place) -> None:
        self.parts: list[_Place] = []
        self._resources: list[_Place] = [root]
        self._anchors: dict[str, list[_Place]] = {}
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

    def iterate_referenced_parts(self, part: _Place) -> Iterator[_Place]:
        """Yield the parts that the references of a part may mean."""
        for name in REFERENCES:
            if isinstance(reference := part.get(name), str):
                yield from self.find_named_parts(reference)

    def find_named_parts(self, reference: str) -> list[_Place]:
        """Return every part with the name in a reference, whatever the address before the name."""
        address, _, fragment = reference.partition("#")
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            return self._anchors.get(fragment, [])
        last = address.rpartition("/")[2].rpartition(":")[2]
        among = [one for one in self._resources if not address or _id_of(one).endswith(last)]
        return [found for one in among if (found := _resolve_pointer(one, fragment)) is not None]


class _Costs(Parts):
    """The costs of a schema's parts, each computed once."""

    def __init__(self, root: _Place) -> None:
        super().__init__(root)
        self._known: dict[int, int | None] = {}

    def cost_of(self, part: Any, depth: int) -> int:
        """Return the number of schemas that are applied where this part is applied.

        Raises: _Endless.
        """
        if not isinstance(part, Mapping):
            return 1
        if depth > DEEPEST:
            raise _Endless(f"its references are chained over more than {DEEPEST} steps")
        if id(part) in self._known:
            if (known := self._known[id(part)]) is None:
                raise _Endless("it refers to itself at one place")
            return known
        self._known[id(part)] = None
        costs = [self.cost_of(one, depth + 1) for one in applied_parts(part)]
        for name in REFERENCES:
            if isinstance(reference := part.get(name), str):
                found = self.find_named_parts(reference)
                costs.append(max((self.cost_of(one, depth + 1) for one in found), default=1))
        # The cost is capped: larger numbers add no information and take long to add.
        self._known[id(part)] = cost = min(1 + sum(costs), MOST + 1)
        return cost


def _id_of(part: _Place) -> str:
    found = part.get("$id", part.get("id", ""))
    return found.rstrip("#") if isinstance(found, str) else ""


def applied_parts(part: _Place) -> Iterator[Any]:
    """Yield the subschemas that a part applies to the same value, except for its references."""
    yield from (part[name] for name in _ONE if name in part)
    for name in _LISTS:
        if isinstance(part.get(name), list):
            yield from part[name]
    for name in _MAPS:
        if isinstance(part.get(name), Mapping):
            yield from part[name].values()


def _resolve_pointer(resource: _Place, pointer: str) -> Any:
    """Return the schema at a JSON pointer, or None if there is no schema."""
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


class ApplicationCounter:
    """The number of applications of a schema within a value; its steps are computed once per schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._root = schema
        self._parts = Parts(schema)
        self._by_id = {id(part): part for part in self._parts.parts}
        self._here: dict[int, _Counts] = {}
        refers = any(isinstance(part.get(name), str) for part in self._parts.parts for name in REFERENCES)
        # Chains of references are known to end only if `cost_fault` finds nothing.
        sound = refers and cost_fault(schema) is None
        self.grows = sound and any(self._doubles(part) for part in self._parts.parts)

    def count_applications(self, value: Any) -> int:
        """Return how often parts of the schema are applied to the value or within it.

        A result above MOST_APPLIED is a lower bound. The result is 0 if the number does not grow with the
        depth.
        """
        if not self.grows:
            return 0
        total = 0
        waiting: list[tuple[Any, _Counts]] = [(value, Counter({id(self._root): 1}))]
        while waiting and total <= MOST_APPLIED:
            one, entered = waiting.pop()
            here: _Counts = Counter()
            for part, times in entered.items():
                for within, often in self._applied_here(part).items():
                    here[within] += times * often
            total += here.total()
            waiting.extend((child, below) for child, below in self._below(one, here) if below)
        return total

    def _below(self, value: Any, here: _Counts) -> Iterator[tuple[Any, _Counts]]:
        """Yield the children of a value, each with the parts that are applied to it."""
        children: Iterator[tuple[Any, Any]] = iter(())
        if isinstance(value, dict):
            children = iter(value.items())
        elif isinstance(value, list):
            children = enumerate(value)
        for key, child in children:
            below: _Counts = Counter()
            for part, times in here.items():
                for one in _to_child(self._by_id[part], key):
                    if isinstance(one, Mapping):
                        below[id(one)] += times
            yield child, below

    def _applied_here(self, part: int) -> _Counts:
        """Return all parts that are applied to a value where this part is applied, with their counts."""
        if part in self._here:
            return self._here[part]
        found: _Counts = Counter({part: 1})
        held = self._by_id[part]
        again = 2 if "unevaluatedProperties" in held or "unevaluatedItems" in held else 1
        inner: _Counts = Counter()
        for one in (*applied_parts(held), *self._parts.iterate_referenced_parts(held)):
            if isinstance(one, Mapping):
                for within, often in self._applied_here(id(one)).items():
                    inner[within] += min(often * again, MOST_APPLIED)
        found.update(inner)
        self._here[part] = found
        return found

    def _doubles(self, part: Mapping[str, Any]) -> bool:
        """Return whether several parts, or one part twice, may be applied to one child of the value."""
        here = self._applied_here(id(part))
        named: Counter[Any] = Counter()
        for within, times in here.items():
            held = self._by_id[within]
            keys = [key for key in _keys(held) if key != _OTHER]
            for key in keys:
                named[key] += times * sum(1 for _ in _to_child(held, key))
            rest = sum(1 for _ in _to_child(held, _OTHER)) + sum(1 for _ in _to_child(held, ""))
            named[_OTHER] += times * rest
        other = named.pop(_OTHER, 0)
        return other > 1 or any(times + other > 1 for times in named.values())


def short_verdict(validator: jsonschema_rs.Validator, growth: ApplicationCounter, value: Any) -> str | None:
    """Return a short verdict on a value whose errors would take too long to list, or None to list them.

    The verdict is "" for a valid value.
    """
    applied = growth.count_applications(value)
    if applied <= MOST_EXPLAINED:
        return None
    if applied > MOST_APPLIED:
        return TOO_DEEP
    return "" if validator.is_valid(value) else "the value does not fit the schema"


def _keys(part: Mapping[str, Any]) -> Iterator[Any]:
    if isinstance(names := part.get("properties"), Mapping):
        yield from names
    for word in ("prefixItems", "items"):
        if isinstance(listed := part.get(word), list):
            yield from range(len(listed))


def _to_child(part: Mapping[str, Any], key: Any) -> Iterator[Any]:
    """Yield the subschemas that a part applies to the child with this name or list index."""
    if isinstance(key, str):
        names, patterns = part.get("properties"), part.get("patternProperties")
        known = isinstance(names, Mapping) and key in names
        if isinstance(names, Mapping) and known:
            yield names[key]
        if isinstance(patterns, Mapping):
            yield from patterns.values()
        words = ["unevaluatedProperties"] if known else ["additionalProperties", "unevaluatedProperties"]
    else:
        items = part.get("items")
        listed = items if isinstance(items, list) else part.get("prefixItems")
        first = isinstance(listed, list) and 0 <= key < len(listed)
        if isinstance(listed, list) and first:
            yield listed[key]
        words = ["contains", "unevaluatedItems"] if first else [*_OTHER_ITEMS]
    yield from (part[word] for word in words if isinstance(part.get(word), Mapping))
