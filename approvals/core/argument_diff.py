"""What an edit changed, value by value (R-APPR-2, R-APPR-3)."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple


class Change(NamedTuple):
    """One difference at a JSON pointer (RFC 6901); what was not there is None, and `what` says so."""

    pointer: str
    what: Literal["added", "removed", "changed"]
    before: Any
    after: Any


def changes(before: Any, after: Any, pointer: str = "") -> tuple[Change, ...]:
    """Every difference between two JSON values, by pointer in the order of the keys.

    Lists of the same length are compared item by item, others as a whole.
    """
    return tuple(_changes(before, after, pointer))


def _changes(before: Any, after: Any, pointer: str) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            yield from _entry(before, after, key, f"{pointer}/{_escaped(key)}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _changes(old, new, f"{pointer}/{place}")
    elif _kind(before) != _kind(after) or before != after:
        yield Change(pointer, "changed", before, after)


def _entry(before: dict[str, Any], after: dict[str, Any], key: str, pointer: str) -> Iterator[Change]:
    if key not in before:
        yield Change(pointer, "added", None, after[key])
    elif key not in after:
        yield Change(pointer, "removed", before[key], None)
    else:
        yield from _changes(before[key], after[key], pointer)


def _kind(value: Any) -> type:
    """1, 1.0 and true are three values to JSON's reader, one to Python's `==`."""
    return type(value)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
