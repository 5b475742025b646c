"""Sealed values in a call's arguments: which of them may go where (docs/discussions.md, M16).

The model sees a reference, never the value, and may write it anywhere. It is opened only where the value was
meant to go: anything else is refused before anybody is asked, and what the task entrusted to the run goes
where the model puts it only with a person's yes.
"""

from collections.abc import Callable
from typing import Any

import orjson

from orchestrator.core.common.argument_parsing import Malformed
from orchestrator.core.domain.run_state import Call
from orchestrator.core.workflow.node_protocol import NodeContext
from traces.core.sealed_references import Place, extract_references, may_open, read_sealed

# Runs of an earlier core have no sealed values.
SINCE = 11
SHOWN = 8


Find = Callable[[str], bytes | None]


def validate_sealed_references(
    find: Find, *, tool: str, by: str, value: Any, remembered: bool = False
) -> Malformed | None:
    """Why arguments with references cannot be sent: one is none of this run's, or its value was not meant for
    where it stands. `find` gives the content of a digest, `by` is who asked for the call; what is
    `remembered` is kept as it is and shown to other runs, so no sealed value goes there."""
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
    return Malformed(detail="; ".join(faults[:SHOWN])) if faults else None


def is_entrusted(view: NodeContext, call: Call) -> bool:
    """Whether the model puts a value of the task into the call that nobody showed it: it goes nowhere without
    a person's yes."""
    if call.by != "model" or call.arguments is None or view.manifest.core_version < SINCE:
        return False
    body = view.desk.read(call.arguments)
    if b"[sealed:" not in body:
        return False
    found = extract_references(orjson.loads(body))
    places = [_find_sealed_place(view.desk.find, one.digest, one.kind) for one in found]
    return any(place is not None and place.source == "goal" for place in places)


def _find_sealed_place(find: Find, digest: str, kind: str) -> Place | None:
    """What a value was sealed for; None where the digest names none of this kind."""
    body = find(digest)
    sealed = read_sealed(body) if body is not None else None
    return sealed.place if sealed is not None and sealed.kind == kind else None


def _describe_intended_place(place: Place) -> str:
    if place.source == "goal":
        return "a value of the task goes into a member of the same name, or one that holds secrets"
    return f"it was written for {place.member[:80]!r} of {place.tool[:80]}"
