"""Differences between proposed and edited arguments, value by value (R-APPR-2, R-APPR-3)."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple


class Change(NamedTuple):
    """One difference at a JSON pointer (RFC 6901). An absent value is None; `what` tells it from null."""

    pointer: str
    what: Literal["added", "removed", "changed"]
    before: Any
    after: Any


def diff_json_values(before: Any, after: Any, pointer: str = "") -> tuple[Change, ...]:
    """Return every difference between two JSON values, by pointer in sorted key order.

    Lists of the same length are compared item by item, others as a whole.
    """
    return tuple(_iterate_changes(before, after, pointer))


def _iterate_changes(before: Any, after: Any, pointer: str) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            yield from _diff_entry(before, after, key, f"{pointer}/{_escape_pointer_token(key)}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _iterate_changes(old, new, f"{pointer}/{place}")
    elif _get_json_type(before) != _get_json_type(after) or before != after:
        yield Change(pointer, "changed", before, after)


def _diff_entry(before: dict[str, Any], after: dict[str, Any], key: str, pointer: str) -> Iterator[Change]:
    if key not in before:
        yield Change(pointer, "added", None, after[key])
    elif key not in after:
        yield Change(pointer, "removed", before[key], None)
    else:
        yield from _iterate_changes(before[key], after[key], pointer)


def _get_json_type(value: Any) -> type:
    """Return the type of a value: 1, 1.0 and true are different in JSON but equal under Python's `==`."""
    return type(value)


def _escape_pointer_token(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
