"""Sealed values in a call's arguments: which of them may go where (docs/decisions/sealed-values.md, M16).

The model sees a reference, never the value, and may write the reference anywhere. A reference is opened
only in the place that the value was meant for; any other use is refused before approval is requested. A
value that the task entrusted to the run goes where the model puts it only with a person's approval.
"""

from collections.abc import Callable
from typing import Any

import orjson

from orchestrator.core.common.argument_parsing import MalformedArguments
from orchestrator.core.domain.run_state import Call
from orchestrator.core.workflow.node_protocol import NodeContext
from traces.core.sealed_references import Place, extract_references, may_open, read_sealed

SHOWN = 8


Find = Callable[[str], bytes | None]


def validate_sealed_references(
    find: Find, *, tool: str, by: str, value: Any, remembered: bool = False
) -> MalformedArguments | None:
    """Explain why arguments with references cannot be sent; None if they can.

    A reference must belong to this run, and its value must be meant for the place where it is used. `find`
    returns the content of a digest; `by` is the author of the call. `remembered`: the arguments are stored
    as they are and shown to other runs, so they may hold no sealed value.
    """
    faults = []
    for found in extract_references(value):
        place = _find_sealed_place(find, found.digest, found.kind)
        where = found.pointer[:80] or "/"
        if place is None:
            faults.append(f"the reference at {where} is none of this run's")
        elif remembered:
            faults.append(f"the sealed value at {where} is not remembered; leave it out")
        elif not may_open(place, tool=tool, member=found.member, by_model=by == "model"):
            faults.append(
                f"the sealed value at {where} was not given for this: {_describe_intended_place(place)}"
            )
    return MalformedArguments(detail="; ".join(faults[:SHOWN])) if faults else None


def is_entrusted(view: NodeContext, call: Call) -> bool:
    """Return whether the model puts a sealed value of the task into the call.

    Such a value was never shown to the model and goes nowhere without a person's approval.
    """
    if call.by != "model" or call.arguments is None:
        return False
    body = view.desk.read(call.arguments)
    if b"[sealed:" not in body:
        return False
    found = extract_references(orjson.loads(body))
    places = [_find_sealed_place(view.desk.find, one.digest, one.kind) for one in found]
    return any(place is not None and place.source == "goal" for place in places)


def _find_sealed_place(find: Find, digest: str, kind: str) -> Place | None:
    """Return the place that a value was sealed for; None if the digest has no sealed value of this kind."""
    body = find(digest)
    sealed = read_sealed(body) if body is not None else None
    return sealed.place if sealed is not None and sealed.kind == kind else None


def _describe_intended_place(place: Place) -> str:
    if place.source == "goal":
        return "a value of the task goes into a member of the same name, or one that holds secrets"
    return f"it was written for {place.member[:80]!r} of {place.tool[:80]}"
