"""The gate of memory: what rests on facts that still stand, of a run that came to a result."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestrator.core.boundary import Boundary
from orchestrator.core.memory import Evidence, Proposed, Standing, fault, refused_by_boundary
from orchestrator.core.terminal import Status
from orchestrator.gateways.tools.registry import shipped_tools
from tests.proves import proves

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
FACT = Evidence(fact="order", version=1, digest="a" * 64, trust="trusted")
PROPOSED = Proposed(
    text="Ada pays late.", kind="semantic", evidence=(FACT,), expires_at=NOON + timedelta(days=9)
)
STANDING = Standing(status=Status.COMPLETED, terminal_code="SUCCESS", facts={"order": FACT})


@proves("R-MEM-2", part="the gate")
@pytest.mark.parametrize(
    ("proposed", "standing", "why"),
    [
        ({}, {}, ""),
        ({}, {"status": Status.IN_PROGRESS, "terminal_code": ""}, "under way"),
        ({}, {"status": Status.FAILED, "terminal_code": "VALIDATION_FAIL"}, "VALIDATION_FAIL"),
        ({"expires_at": NOON}, {}, "run out"),
        ({"evidence": ()}, {}, "rests on no fact"),
        ({}, {"facts": {}}, "is no fact of its run"),
        ({}, {"facts": {"order": FACT.evolve(version=2, digest="b" * 64)}}, "a newer one stands"),
    ],
)
def test_only_what_stands_is_kept(proposed: dict[str, Any], standing: dict[str, Any], why: str) -> None:
    found = fault(PROPOSED.evolve(**proposed), STANDING.evolve(**standing), NOON)
    assert (why in found) if why else found == ""


@proves("R-MEM-1", part="the boundary's word on memory")
@pytest.mark.parametrize(
    ("memory", "read", "proposes"), [("none", False, False), ("read", True, False), ("propose", True, True)]
)
def test_a_boundary_says_what_of_memory_a_run_has(memory: Any, read: bool, proposes: bool) -> None:
    boundary = Boundary(slug="b", version=1, memory=memory)
    search, propose = (shipped_tools()[f"memory.{name}"].spec for name in ("search", "propose"))
    assert (refused_by_boundary(search, boundary) is None) is read
    assert (refused_by_boundary(propose, boundary) is None) is proposes
    assert refused_by_boundary(shipped_tools()["clock.now"].spec, boundary) is None
