"""Memory by the API: what waits, and an administrator's word on it."""

from typing import Any

import pytest

from orchestrator.knowledge.actions.memory import propose_memory
from orchestrator.knowledge.queries.memory import facts_of_run
from tenancy.db.tenant_context import tenant_transaction
from tests.doors.api.program import Program, refusal
from tests.factories.world import World
from tests.proves import proves


@pytest.fixture
def waiting(world: World) -> str:
    """A proposal of a run that came to its result."""
    run = world.submit("tool-loop", "How much is (12 + 30) * 2?")
    assert world.drive(run).terminal_code == "SUCCESS"
    with tenant_transaction(world.id):
        facts = list(facts_of_run(run))[:1]
        row = propose_memory(world.id, run, key="k", kind="semantic", text="It is 84.", facts=facts, days=9)
        return str(row.id)


def rows(caller: Program, **query: Any) -> list[dict[str, Any]]:
    """A page's rows."""
    found: list[dict[str, Any]] = caller.get("/memory", query).json()["results"]
    return found


@proves("R-MEM-2", part="by the API")
def test_a_proposal_is_listed_with_its_support_kept_and_quarantined(
    world: World, admin: Program, auditor: Program, waiting: str
) -> None:
    (row,) = rows(auditor, verdict="waiting")
    assert (row["id"], row["text"], row["verdict"], len(row["evidence"])) == (
        waiting,
        "It is 84.",
        "waiting",
        1,
    )
    kept = admin.post(f"/memory/{waiting}/keep", {"reason": "It is so."}).json()
    assert (kept["verdict"], kept["reason"]) == ("kept", "It is so.")
    assert rows(auditor, verdict="waiting") == []
    again = admin.post(f"/memory/{waiting}/keep", {"reason": "Once more."})
    assert refusal(again) == (409, "memory-refused")
    assert admin.post(f"/memory/{waiting}/quarantine", {"reason": "Odd."}).json()["verdict"] == "quarantined"
    assert [one["verdict"] for one in rows(auditor)] == ["quarantined"]


def test_a_word_needs_its_reason_and_a_proposal(admin: Program, waiting: str) -> None:
    assert admin.post(f"/memory/{waiting}/keep").status_code == 400
    assert admin.post("/memory/nothing/keep", {"reason": "x"}).status_code == 404
    assert admin.get("/memory", {"verdict": "perhaps"}).status_code == 400
