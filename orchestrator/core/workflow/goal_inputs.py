"""The client's inputs (the goal's inputs merged with answers to questions), and JSON pointers."""

import re
from decimal import Decimal
from typing import Any

from orchestrator.core.common.frozen_model import Small
from orchestrator.core.common.goal import Goal
from orchestrator.core.domain.content_store import ContentStore
from orchestrator.core.domain.run_state import RunState

MISSING = object()
SMALL_TEXT = 200
AMOUNT = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,12})?", re.ASCII)


def merge_goal_inputs(goal: Goal, state: RunState, desk: ContentStore) -> dict[str, Any]:
    """Return the goal's inputs, overridden by the answers in the order in which they were given."""
    merged = dict(goal.inputs)
    for digest in state.answers:
        answer = desk.json(digest)
        if isinstance(answer, dict):
            merged.update(answer)
    return merged


def resolve_pointer(value: Any, pointer: str) -> Any:
    """Return the value at an RFC 6901 pointer in `value`, or MISSING."""
    if pointer == "":
        return value
    for raw in pointer.lstrip("/").split("/"):
        key = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return MISSING
    return value


def is_same_value(found: Any, wanted: Any) -> bool:
    """Return whether two values are equal, or equal as amounts: a service may write 129.9 as 129.90."""
    if found == wanted:
        return True
    if not isinstance(found, str) or not isinstance(wanted, str):
        return False
    amounts = AMOUNT.fullmatch(found) is not None and AMOUNT.fullmatch(wanted) is not None
    return amounts and Decimal(found) == Decimal(wanted)


def to_small_value(value: Any) -> Small:
    """Return the value if it is small and scalar, a float as text, and None for anything else."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str) and len(value) <= SMALL_TEXT:
        return value
    return None


def small_values(result: Any, pointers: dict[str, str]) -> dict[str, Small]:
    """Return the small values that a fact stores.

    Those are the values that the tool names, else the scalars at the top of the result (at most eight).
    """
    if pointers:
        found = {name: resolve_pointer(result, pointer) for name, pointer in pointers.items()}
        return {name: to_small_value(value) for name, value in found.items() if value is not MISSING}
    if not isinstance(result, dict):
        return {"value": to_small_value(result)}
    scalars = {k: v for k, v in result.items() if isinstance(v, str | int | float | bool) and len(k) <= 64}
    return {name: to_small_value(scalars[name]) for name in sorted(scalars)[:8]}
