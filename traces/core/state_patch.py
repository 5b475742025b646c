"""Small patches between two states; identical objects are not compared (docs/trace-format.md)."""

from collections.abc import Mapping
from itertools import compress, islice
from operator import is_not
from typing import Any, TypeVar

from pydantic import BaseModel

from traces.core.canonical import canonical_typed

K = TypeVar("K")
V = TypeVar("V")
Plain = dict[str, Any]
_ABSENT = object()
# For so few entries, comparing each one is faster than the check that would avoid it.
FEW = 8


def diff_states(before: BaseModel, after: BaseModel) -> Plain:
    """Return the patch from one state to another of the same class.

    By field, the patch contains `{"set": value}`, and for mappings `{"put": entries, "drop": keys}`. The
    values are the models' own objects; the canonical form makes them plain.
    """
    patch: Plain = {}
    old = before.__dict__
    for name, now in select_replaced_entries(old, after.__dict__).items():
        was = old[name]
        if isinstance(was, dict) and isinstance(now, dict):
            if entries := _diff_mappings(was, now):
                patch[name] = entries
        elif not _is_unchanged(was, now):
            patch[name] = {"set": now}
    return patch


def apply_patch(state: Plain, patch: Mapping[str, Any]) -> Plain:
    """Return the plain state after a plain patch; a put entry keeps the former position or is last."""
    changed = dict(state)
    for name, change in patch.items():
        if "set" in change:
            changed[name] = change["set"]
            continue
        dropped = change.get("drop", ())
        kept = {key: value for key, value in changed.get(name, {}).items() if key not in dropped}
        changed[name] = {**kept, **change.get("put", {})}
    return changed


def select_replaced_entries(was: Mapping[K, V], now: Mapping[K, V]) -> dict[K, V]:
    """Return the entries of `now` that are not identical objects in `was`.

    A run has many facts, and its state many fields, and a transition appends one or changes one: the common
    case avoids a comparison of each entry in Python.
    """
    if len(now) < FEW:
        return {key: value for key, value in now.items() if was.get(key, _ABSENT) is not value}
    old = list(was)
    if old == list(islice(now, len(old))):
        moved = compress(old, map(is_not, was.values(), now.values()))
        return {key: now[key] for key in (*moved, *islice(now, len(old), None))}
    return {key: value for key, value in now.items() if was.get(key, _ABSENT) is not value}


def _is_unchanged(was: Any, now: Any) -> bool:
    """Return whether nothing changed. Equality is not enough: 1 and True are equal but differ in JSON."""
    if isinstance(was, BaseModel) and isinstance(now, BaseModel):
        # A model's own comparison begins with this one and, if unequal, repeats it field by field.
        was, now = was.__dict__, now.__dict__
    return bool(was == now) and canonical_typed(was) == canonical_typed(now)


def _diff_mappings(was: Mapping[str, Any], now: Mapping[str, Any]) -> Plain:
    put: Plain = {}
    fresh = 0
    for key, value in select_replaced_entries(was, now).items():
        if key not in was:
            fresh += 1
        elif _is_unchanged(was[key], value):
            continue
        put[key] = value
    entries: Plain = {"put": put} if put else {}
    if len(was) + fresh != len(now):
        entries["drop"] = [key for key in was if key not in now]
    return entries
