"""The policy by origin, what a run may reach, and what its answer rests on, for programs."""

import pytest

from orchestrator.core.policy.rules import SHIPPED
from tenancy.core.roles import Role
from tests.doors.api.program import Program, pointers, program, refusal
from tests.doors.pages.people import refund
from tests.doubles.company import Company
from tests.factories.tenancy import make_somebody
from tests.factories.world import World
from tests.proves import proves

RULES = SHIPPED.model_dump(mode="json")["rules"]
SHUT = {"name": "shut", "decision": "deny", "reason": "Not here.", "tools": ["ledger.*"]}
STRICTER = {"rules": [SHUT, *RULES], "reason": "No ledger"}
WEAKER = {"rules": RULES[1:], "reason": "Too strict"}


@pytest.fixture
def admin(world: World) -> Program:
    """May do everything."""
    return program(world.id, Role.ADMIN, owner=world.people.admin.person)


@proves("R-TOOL-17", part="API: a version with its reason, and a second person for less")
def test_a_program_tightens_at_once_and_loosens_with_a_second_one(admin: Program, world: World) -> None:
    before = admin.get("/policy")
    assert (before["ETag"], before.json()["version"]) == ('"0"', 0)
    tighter = admin.send("put", "/policy", STRICTER, headers={"If-Match": '"0"'})
    assert (tighter.status_code, tighter.json()["version"]) == (200, 1)
    late = admin.send("put", "/policy", WEAKER, headers={"If-Match": '"0"'})
    assert refusal(late) == (412, "stale")
    waiting = admin.send("put", "/policy", WEAKER)
    assert (waiting.status_code, waiting.json()["version"]) == (202, 1)
    proposal = waiting.json()["proposal"]
    assert {case["before"] for case in proposal["weaker"]} == {"deny"}
    agree = f"/policy/proposals/{proposal['id']}/agree"
    assert refusal(admin.post(agree, {"reason": "Yes"})) == (403, "own-proposal")
    assert refusal(admin.send("put", "/policy", WEAKER)) == (409, "proposal-open")
    second = program(world.id, Role.ADMIN, owner=make_somebody(world.house.tenant, Role.ADMIN).person)
    agreed = second.post(agree, {"reason": "Yes"})
    assert (agreed.status_code, agreed.json()["version"], agreed.json()["proposal"]) == (200, 2, None)
    assert [row["version"] for row in admin.get("/policy/versions").json()["results"]] == [2, 1]
    assert refusal(second.post(agree, {"reason": "Yes"}))[0] == 404


def test_what_is_no_policy_is_refused_by_place(admin: Program) -> None:
    wrong = admin.send("put", "/policy", {"rules": [{**SHUT, "decision": "maybe"}], "reason": "?"})
    assert (wrong.status_code, pointers(wrong)) == (400, ["/rules/0/decision"])


@proves("R-TOOL-17", part="API: the scope of a task")
@proves("M15", part="API")
def test_a_run_says_what_it_may_reach_and_what_its_answer_rests_on(admin: Program, world: World) -> None:
    run = world.submit(
        "support-refund", "Refund order A-1001 for ada@example.org", inputs={"order_id": "A-1001"}
    )
    found = admin.get(f"/runs/{run}").json()
    assert found["scope"]["names"]["recipients"] == ["ada@example.org"]
    assert found["scope"]["names"]["references"] == ["a-1001"]
    assert found["scope"]["policy_version"] == 0
    assert (found["untrusted"], found["notice"]) == ([], "")


@proves("M15", part="API: the run and its result")
def test_an_answer_that_rests_on_untrusted_content_says_so_to_programs(
    admin: Program, world: World, company: Company
) -> None:
    run = refund(world, company, whole=True)
    for address in (f"/runs/{run}", f"/runs/{run}/result"):
        found = admin.get(address).json()
        assert "order" in [one["fact"] for one in found["untrusted"]]
        assert "nobody vouches for" in found["notice"]
