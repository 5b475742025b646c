"""Check that a finished run's trace contains everything that an audit requires (R-TRACE-2)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

MANIFEST: Final = {
    "run": "run id",
    "tenant": "tenant",
    "scopes": "scope",
    "goal_digest": "goal",
    "graph": "graph version",
    "core_version": "core version",
    "limits": "budget vector",
}
PINS: Final = {
    "boundary_digest": "boundary version",
    "profiles": "model versions",
    "prompt_versions": "prompt versions",
    "registry_digest": "registry version",
}
CALL: Final = ("tool", "tool_version", "argument_digest", "effect", "idempotency_key")
ENDS: Final = frozenset({"call_observed", "call_in_doubt", "call_recovered", "late_outcome"})
ANSWERS: Final = frozenset(
    {"approval_decided", "approval_expired", "approval_withdrawn", "question_answered"}
)


def missing_parts(
    bodies: Sequence[Mapping[str, Any]], manifest: Mapping[str, Any] | None, *, snapshots: int
) -> tuple[str, ...]:
    """Return the parts missing from the trace of a finished run, in words; empty if it is complete.

    `bodies` are the contents of its events, in order; `manifest` is the run's pins (with `pins` inside), None
    if the run is unknown; `snapshots` is the number of its stored states. Acts that the run never did (calls,
    escalations) are not required.
    """
    missing = [] if manifest is None else _list_missing_pins(manifest)
    kinds = {str(body.get("kind")) for body in bodies}
    if "task_submitted" not in kinds:
        missing.append("submission")
    if not any(body.get("kind") == "run_finished" and body.get("terminal_code") for body in bodies):
        missing.append("terminal code")
    if not snapshots:
        missing.append("checkpoints")
    missing += (
        _list_missing_call_parts(bodies) + _list_missing_validations(bodies) + _list_open_escalations(bodies)
    )
    return tuple(missing)


def _list_missing_pins(manifest: Mapping[str, Any]) -> list[str]:
    """Return the missing versions: every version in force must be named."""
    pins = manifest.get("pins") or {}
    missing = [words for name, words in MANIFEST.items() if manifest.get(name) in (None, "")]
    return missing + [words for name, words in PINS.items() if pins.get(name) in (None, "")]


def _list_missing_call_parts(bodies: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the missing parts of calls.

    Every attempt must name its tool, arguments and request, and have an end with status and observation.
    """
    ended = {body.get("effect") for body in bodies if body.get("kind") in ENDS}
    missing: list[str] = []
    for body in bodies:
        if body.get("kind") == "call_attempted":
            call = body.get("call")
            missing += [f"{name} of call {call}" for name in CALL if not body.get(name)]
            if body.get("effect") not in ended:
                missing.append(f"status of call {call}")
        if body.get("kind") == "call_observed" and body.get("status") == "ok" and not body.get("observation"):
            missing.append(f"observation of call {body.get('call')}")
    return missing


def _list_missing_validations(bodies: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the missing validations: every fact must have been checked by a named validator."""
    checked = {body.get("call") for body in bodies if body.get("kind") == "call_verified"}
    return [
        f"validation of fact {body.get('fact')}"
        for body in bodies
        if body.get("kind") == "fact_committed"
        and (body.get("call") not in checked or not body.get("validator"))
    ]


def _list_open_escalations(bodies: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the escalations without an end.

    Every request to people must have been answered, expired or withdrawn, unless the run was cancelled or
    expired before.
    """
    answered = {body.get("request") for body in bodies if body.get("kind") in ANSWERS}
    asked = [body.get("request") for body in bodies if body.get("kind") == "approval_requested"]
    if any(
        body.get("kind") == "run_finished" and body.get("status") in ("cancelled", "expired")
        for body in bodies
    ):
        return []
    return [f"end of escalation {request}" for request in asked if request not in answered]
