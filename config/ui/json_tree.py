"""A JSON value as a tree the template draws, bounded in size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST = 500
DEEPEST = 12
OPEN_BELOW = 12
"""A branch with fewer children than this, near the root, is open at first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One value. `kind` is object, array, string, number, boolean or null; `left`: how many are not drawn."""

    key: str | None
    kind: str
    text: str = ""
    size: int = 0
    children: tuple[Node, ...] = ()
    left: int = 0
    opened: bool = False


def build_json_tree(value: Any) -> Node:
    """The tree of a JSON value, at most 500 nodes and twelve levels of it."""
    return _build_node(None, value, [MOST], 0)


def _build_node(key: str | None, value: Any, budget: list[int], depth: int) -> Node:
    budget[0] -= 1
    pairs = list(_iterate_pairs(value))
    if not pairs and not isinstance(value, Mapping | list | tuple):
        return Node(key=key, kind=_name_json_type(value), text=_format_scalar(value))
    kind = "object" if isinstance(value, Mapping) else "array"
    children = []
    for name, child in pairs:
        if budget[0] <= 0 or depth >= DEEPEST:
            break
        children.append(_build_node(name, child, budget, depth + 1))
    return Node(
        key=key, kind=kind, size=len(pairs), children=tuple(children), left=len(pairs) - len(children),
        opened=depth < 2 and len(pairs) < OPEN_BELOW,
    )  # fmt: skip


def _iterate_pairs(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((str(name), child) for name, child in value.items())
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        yield from ((str(at), child) for at, child in enumerate(value))


def _name_json_type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else "string"


def _format_scalar(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower().replace("none", "null")
    return str(value)
