"""The audit fails a trace from which anything is absent (R-TRACE-2)."""

from typing import Any

import pytest

from tests.proves import proves
from traces.core.integrity.completeness import missing_parts

MANIFEST: dict[str, Any] = {
    "run": "r", "tenant": "t", "scopes": ["submit"], "goal_digest": "g", "graph": "h", "core_version": 1,
    "limits": {"steps": "5"},
    "pins": {
        "boundary_digest": "b", "profiles": [{"name": "m"}], "prompt_versions": {"act": 1},
        "registry_digest": "d",
    },
}  # fmt: skip
BODIES: list[dict[str, Any]] = [
    {"kind": "task_submitted"},
    {
        "kind": "call_attempted", "call": "c1", "effect": "e1", "tool": "orders.lookup", "tool_version": "1",
        "argument_digest": "a", "idempotency_key": "k",
    },
    {"kind": "call_observed", "call": "c1", "effect": "e1", "status": "ok", "observation": "o"},
    {"kind": "call_verified", "call": "c1"},
    {"kind": "fact_committed", "fact": "order", "call": "c1", "validator": "order_exists"},
    {"kind": "approval_requested", "request": "q1"},
    {"kind": "approval_decided", "request": "q1"},
    {"kind": "run_finished", "terminal_code": "SUCCESS", "status": "completed"},
]  # fmt: skip


@proves("R-TRACE-2")
def test_a_whole_trace_misses_nothing() -> None:
    assert missing_parts(BODIES, MANIFEST, snapshots=1) == ()


@proves("R-TRACE-2", part="events")
@pytest.mark.parametrize(
    ("left_out", "missing"),
    [
        ("task_submitted", "submission"), ("call_observed", "status of call c1"),
        ("call_verified", "validation of fact order"), ("approval_decided", "end of escalation q1"),
        ("run_finished", "terminal code"),
    ],
)  # fmt: skip
def test_what_was_not_said_is_missed(left_out: str, missing: str) -> None:
    bodies = [body for body in BODIES if body["kind"] != left_out]
    assert missing_parts(bodies, MANIFEST, snapshots=1) == (missing,)


@proves("R-TRACE-2", part="manifest")
@pytest.mark.parametrize("name", sorted(MANIFEST.keys() - {"pins"}))
def test_each_part_of_the_manifest_is_missed(name: str) -> None:
    assert len(missing_parts(BODIES, MANIFEST | {name: None}, snapshots=1)) == 1


@pytest.mark.parametrize("name", sorted(MANIFEST["pins"]))
def test_each_version_is_missed(name: str) -> None:
    pins = {key: value for key, value in MANIFEST["pins"].items() if key != name}
    assert len(missing_parts(BODIES, MANIFEST | {"pins": pins}, snapshots=1)) == 1


@pytest.mark.parametrize("name", ["tool", "tool_version", "argument_digest", "idempotency_key"])
def test_each_part_of_a_call_is_missed(name: str) -> None:
    bodies = [{key: value for key, value in body.items() if key != name} for body in BODIES]
    assert missing_parts(bodies, MANIFEST, snapshots=1) == (f"{name} of call c1",)


def test_an_observation_that_is_named_nowhere_and_a_run_without_checkpoints_are_missed() -> None:
    bodies = [body | ({"observation": None} if body["kind"] == "call_observed" else {}) for body in BODIES]
    assert missing_parts(bodies, MANIFEST, snapshots=0) == ("checkpoints", "observation of call c1")
