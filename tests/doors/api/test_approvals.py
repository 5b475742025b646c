"""The inbox for programs: list, get, and every way a decision is taken or refused."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest

from approvals.models import Decision, GrantUse, Request
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doors.api.program import Program, pointers, program, refusal
from tests.doubles.company import Company
from tests.factories.approvals import ASKED, open_desk
from tests.factories.world import World, company_at, make_world
from tests.proves import proves


@pytest.fixture
def world(house: House, company: Company) -> Iterator[World]:
    """A furnished house whose tools talk to the demo company."""
    with company_at(company.url):
        yield make_world(house)


@pytest.fixture
def reviewer(world: World) -> Program:
    """May decide."""
    return program(world.id, Role.REVIEWER)


def at_the_gate(world: World, order: str = "A-1001") -> tuple[UUID, str]:
    """A refund that waits: its run and the address of its request."""
    run = world.submit("support-refund", "Refund the order", inputs={"order_id": order})
    world.drive(run)
    (request,) = world.open_requests(run)
    return run, f"/approvals/{request.id}"


def said(world: World) -> int:
    """How many words were said in the tenant."""
    with tenant_transaction(world.id):
        return Decision.objects.count()


@proves("R-API-2", part="approvals list and get")
def test_a_request_is_listed_and_shows_what_would_be_done(world: World, auditor: Program) -> None:
    run, where = at_the_gate(world)
    (row,) = auditor.get("/approvals", {"status": "pending"}).json()["results"]
    shown = auditor.get(where).json()
    assert {name: shown[name] for name in row} == row
    assert (row["run"], row["kind"], row["tool"], row["queue"]) == (
        str(run), "action", "payments.refund", "finance",
    )  # fmt: skip
    action = shown["action"]
    assert action["tool"] == "payments.refund"
    assert set(action["argument_provenance"]) == {f"/{name}" for name in action["arguments"]}
    assert Decimal(row["amount"]) == Decimal(action["arguments"]["amount"])
    assert row["expires_at"] > row["created_at"]
    assert (len(shown["packet_digest"]), shown["decisions"]) == (64, [])


@proves("R-API-2", part="filters and pages of approvals")
def test_each_filter_of_the_inbox_finds_its_own(world: World, auditor: Program) -> None:
    runs = [str(at_the_gate(world, order)[0]) for order in ("A-1001", "A-1002")]
    cases: list[tuple[dict[str, str], list[str]]] = [
        ({}, runs),
        ({"status": "pending"}, runs),
        ({"status": "decided"}, []),
        ({"run": runs[1]}, runs[1:]),
        ({"queue": "finance"}, runs),
        ({"queue": "support"}, []),
    ]
    for query, expected in cases:
        found = auditor.get("/approvals", query).json()["results"]
        assert [row["run"] for row in found] == expected, query
    first = auditor.get("/approvals", {"limit": 1}).json()
    second = auditor.get(first["next"]).json()
    assert [row["run"] for row in first["results"] + second["results"]] == runs
    assert second["next"] is None


@pytest.mark.parametrize(
    ("name", "value"), [("status", "open"), ("run", "x"), ("queue", "q" * 65), ("limit", "0")]
)
def test_a_filter_that_is_none_is_400(auditor: Program, name: str, value: str) -> None:
    answer = auditor.get("/approvals", {name: value})
    assert (refusal(answer)[0], pointers(answer)) == (400, [f"/{name}"])


@proves("R-API-2", part="approve")
def test_an_approval_lets_the_refund_through(world: World, reviewer: Program, company: Company) -> None:
    run, where = at_the_gate(world)
    digest = reviewer.get(where).json()["packet_digest"]
    body = {"decision": "approve", "reason": "ok", "packet_digest": digest}
    answer = reviewer.post(f"{where}/decisions", body)
    assert (answer.status_code, answer.json()["status"], answer.json()["outcome"]) == (
        200,
        "decided",
        "approve",
    )
    (word,) = answer.json()["decisions"]
    assert (word["decision"], word["reason"], word["changes"]) == ("approve", "ok", [])
    world.drive(run)
    assert len(company.effects("payments")) == 1


@proves("W1", part="a NUL in what is answered")
def test_a_decision_under_a_key_is_answered_though_the_arguments_hold_a_nul(house: House) -> None:
    with open_desk(house) as desk:
        request = desk.ask(arguments={**ASKED, "order_id": "A-1\0"})
        reviewer = program(desk.id, Role.REVIEWER)
        where = f"/approvals/{request.id}/decisions"
        first, second = (reviewer.post(where, {"decision": "approve"}, once="one") for _ in range(2))
    assert (first.status_code, second["Idempotent-Replay"]) == (200, "true")
    assert first.json()["action"]["arguments"]["order_id"] == "A-1\0"
    assert first.json() == second.json()


@proves("R-APPR-3", part="no word with more than it says")
@pytest.mark.parametrize(
    ("decision", "name", "value"),
    [
        ("approve", "arguments", {"order_id": "A-1", "amount": "0.01"}),
        ("approve", "arguments", {}),
        ("approve", "amounts", {"cost_usd": "1"}),
        ("reject", "arguments", {"amount": "0.01"}),
        ("reject", "answer", "no"),
        ("edit", "amounts", {}),
    ],
)
def test_a_field_that_a_decision_has_no_use_for_is_named_and_nothing_is_said(
    house: House, decision: str, name: str, value: Any
) -> None:
    with open_desk(house) as desk:
        request = desk.ask()
        where = f"/approvals/{request.id}"
        reviewer = program(desk.id, Role.REVIEWER)
        answer = reviewer.post(f"{where}/decisions", {"decision": decision, name: value})
        assert (refusal(answer), pointers(answer)) == ((422, "decision-invalid"), [f"/{name}"])
        assert reviewer.get(where).json()["decisions"] == []
        empty = {"decision": "approve", "answer": None}
        assert reviewer.post(f"{where}/decisions", empty).json()["outcome"] == "approve"


@proves("R-API-2", part="revise")
def test_a_program_sends_a_message_back(world: World, reviewer: Program) -> None:
    run, where = at_the_gate(world)
    assert reviewer.get(where).json()["offers"] == ["approve", "edit", "reject"]
    reviewer.post(f"{where}/decisions", {"decision": "approve"})
    world.drive(run)
    (mail,) = world.open_requests(run)
    where = f"/approvals/{mail.id}"
    assert reviewer.get(where).json()["offers"] == ["approve", "edit", "revise", "reject"]
    empty = reviewer.post(f"{where}/decisions", {"decision": "revise"})
    assert (refusal(empty)[0], reviewer.get(where).json()["status"]) == (422, "pending")
    answer = reviewer.post(f"{where}/decisions", {"decision": "revise", "reason": "Too short."}).json()
    assert (answer["status"], answer["outcome"], answer["offers"]) == ("decided", "revise", [])
    (word,) = answer["decisions"]
    assert (word["decision"], word["reason"]) == ("revise", "Too short.")


def test_nothing_can_be_said_any_more_once_the_time_is_up(house: House) -> None:
    with open_desk(house) as desk:
        late = desk.ask(expires_in=timedelta(seconds=-1))
        told = program(desk.id, Role.REVIEWER).get(f"/approvals/{late.id}").json()
    assert (told["status"], told["offers"]) == ("pending", [])


@proves("R-API-2", part="edit")
def test_an_edit_is_shown_beside_what_was_asked(world: World, reviewer: Program, company: Company) -> None:
    run, where = at_the_gate(world)
    before = reviewer.get(where).json()["action"]["arguments"]
    body = {"decision": "edit", "arguments": {**before, "amount": "10.00"}}
    (word,) = reviewer.post(f"{where}/decisions", body).json()["decisions"]
    assert word["arguments"] == body["arguments"]
    assert word["changes"] == [
        {"pointer": "/amount", "what": "changed", "before": before["amount"], "after": "10.00"}
    ]
    world.drive(run)
    assert [Decimal(effect["body"]["amount"]) for effect in company.effects("payments")] == [Decimal(10)]


@proves("R-API-2", part="reject")
def test_a_rejection_refunds_nothing(world: World, reviewer: Program, company: Company) -> None:
    run, where = at_the_gate(world)
    answer = reviewer.post(f"{where}/decisions", {"decision": "reject", "reason": "no"})
    assert (answer.status_code, answer.json()["outcome"]) == (200, "reject")
    world.drive(run)
    assert company.effects("payments") == []


@proves("R-API-2", part="answer")
def test_a_question_is_its_submitters_to_answer(
    world: World, client_program: Program, reviewer: Program
) -> None:
    task = client_program.post(
        "/tasks", {"workflow": "support-refund", "goal": {"objective": "Refund"}}
    ).json()
    run = UUID(task["run"]["id"])
    world.drive(run)
    (row,) = client_program.get("/approvals", {"run": run}).json()["results"]
    where = f"/approvals/{row['id']}"
    shown = client_program.get(where).json()
    assert (row["kind"], shown["action"]) == ("clarification", None)
    assert shown["answer_schema"]
    body = {"decision": "answer", "answer": {"order_id": "A-1001"}}
    wrong = client_program.post(f"{where}/decisions", {"decision": "answer", "answer": {"order_id": 7}})
    assert (refusal(wrong), pointers(wrong)) == ((422, "decision-invalid"), ["/answer/order_id"])
    assert client_program.post(f"{where}/decisions", body).json()["outcome"] == "answer"
    assert world.drive(run).status == "awaiting_gate"
    assert {row["kind"] for row in reviewer.get("/approvals", {"status": "pending"}).json()["results"]} == {
        "action"
    }


@proves("A3", part="409 at the door")
def test_the_second_decision_is_409(world: World, reviewer: Program) -> None:
    _, where = at_the_gate(world)
    assert reviewer.post(f"{where}/decisions", {"decision": "approve"}).status_code == 200
    other = program(world.id, Role.REVIEWER)
    for decision in ("approve", "reject"):
        for who in (reviewer, other):
            answer = who.post(f"{where}/decisions", {"decision": decision})
            assert refusal(answer) == (409, "already-decided")
    assert said(world) == 1


@proves("R-APPR-5", part="one answer at the door")
def test_the_same_decision_under_its_key_is_one(world: World, reviewer: Program) -> None:
    _, where = at_the_gate(world)
    body = {"decision": "approve"}
    first, again = (reviewer.post(f"{where}/decisions", body, once="k-1") for _ in range(2))
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert said(world) == 1


@proves("A8", part="403 at the door")
def test_nobody_decides_on_what_they_or_their_owner_submitted(world: World) -> None:
    owner = world.people.admin.person
    own, sibling = (program(world.id, Role.ADMIN, owner=owner) for _ in range(2))
    body = {"workflow": "support-refund", "goal": {"objective": "Refund", "inputs": {"order_id": "A-1001"}}}
    run = UUID(own.post("/tasks", body).json()["run"]["id"])
    world.drive(run)
    (request,) = world.open_requests(run)
    for who in (own, sibling):
        answer = who.post(f"/approvals/{request.id}/decisions", {"decision": "approve"})
        assert refusal(answer) == (403, "not-yours")
    assert said(world) == 0


@proves("R-APPR-3", part="the right to decide at the door")
def test_a_key_without_the_scope_decides_nothing(
    world: World, auditor: Program, client_program: Program, operator: Program
) -> None:
    _, where = at_the_gate(world)
    for who in (auditor, client_program, operator):
        answer = who.post(f"{where}/decisions", {"decision": "approve"})
        assert refusal(answer) == (403, "not-yours")
    assert said(world) == 0


@proves("A4", part="410 at the door")
def test_a_late_decision_is_410_and_runs_nothing(
    world: World, reviewer: Program, superuser: psycopg.Connection, company: Company
) -> None:
    run, where = at_the_gate(world)
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute("UPDATE approvals_request SET expires_at = created_at WHERE run_id = %s", [run])
    for _ in range(2):
        answer = reviewer.post(f"{where}/decisions", {"decision": "approve"})
        assert refusal(answer) == (410, "request-expired")
    world.drive(run)
    assert (said(world), company.effects("payments")) == (0, [])


@proves("A1", part="another packet at the door")
def test_a_decision_on_another_packet_is_409(world: World, reviewer: Program) -> None:
    _, where = at_the_gate(world)
    answer = reviewer.post(f"{where}/decisions", {"decision": "approve", "packet_digest": "0" * 64})
    assert refusal(answer) == (409, "packet-changed")
    assert said(world) == 0


MALFORMED: list[tuple[Any, int, list[str]]] = [
    ([], 400, [""]),
    ({}, 400, ["/decision"]),
    ({"decision": "perhaps"}, 400, ["/decision"]),
    ({"decision": ["approve"]}, 400, ["/decision"]),
    ({"decision": None}, 400, ["/decision"]),
    ({"decision": "approve", "comment": "x"}, 400, ["/comment"]),
    ({"decision": "approve", "reason": 5}, 400, ["/reason"]),
    ({"decision": "approve", "reason": "x" * 4_001}, 400, ["/reason"]),
    ({"decision": "approve", "packet_digest": "abc"}, 400, ["/packet_digest"]),
    ({"decision": "approve", "packet_digest": None}, 400, ["/packet_digest"]),
    ({"decision": "edit", "arguments": []}, 400, ["/arguments"]),
    ({"decision": "edit", "arguments": None}, 400, ["/arguments"]),
    ({"decision": "edit"}, 422, ["/arguments"]),
    ({"decision": "edit", "arguments": {}}, 422, ["/arguments"]),
    ({"decision": "edit", "arguments": {"amount": 1.5}}, 422, ["/arguments"]),
    ({"decision": "answer", "answer": "yes"}, 422, []),
]


@proves("R-SEC-7", part="a malformed decision names its field and changes nothing")
def test_each_malformed_decision_is_refused_and_decides_nothing(world: World, reviewer: Program) -> None:
    _, where = at_the_gate(world)
    wrong = []
    for body, status, fields in MALFORMED:
        answer = reviewer.post(f"{where}/decisions", body)
        if (refusal(answer)[0], pointers(answer)) != (status, fields):
            wrong.append((str(body)[:80], answer.status_code, pointers(answer)))
    assert wrong == []
    assert (said(world), reviewer.get(where).json()["status"]) == (0, "pending")


@proves("A3", part="two at once")
def test_over_the_limit_two_reviewers_are_needed(world: World, reviewer: Program) -> None:
    _, where = at_the_gate(world, "A-1003")
    assert reviewer.get(where).json()["quorum"] == 2
    first = reviewer.post(f"{where}/decisions", {"decision": "approve"}).json()
    assert (first["status"], len(first["decisions"])) == ("pending", 1)
    assert refusal(reviewer.post(f"{where}/decisions", {"decision": "approve"}))[0] == 409
    second = program(world.id, Role.REVIEWER).post(f"{where}/decisions", {"decision": "approve"}).json()
    assert (second["status"], len(second["decisions"])) == ("decided", 2)


@proves("R-APPR-9", part="assignment and comments by program")
def test_a_program_claims_remarks_and_lets_go(world: World, reviewer: Program) -> None:
    _, where = at_the_gate(world)
    claimed = reviewer.post(f"{where}/assignment", {"do": "claim"})
    assert (claimed.status_code, claimed.json()["held_by"]["name"][:4]) == (200, "key ")
    other = program(world.id, Role.REVIEWER)
    assert refusal(other.post(f"{where}/assignment", {"do": "claim"}))[0] == 409
    told = other.post(f"{where}/assignment", {"do": "comment", "text": "Mine next time."}).json()
    assert [one["text"] for one in told["comments"]] == ["Mine next time."]
    assert reviewer.post(f"{where}/assignment", {"do": "release"}).json()["held_by"] is None
    assert reviewer.get(f"{where}/assignment").json() == {**told, "held_by": None}
    for body, status in (({"do": "dance"}, 400), ({"do": "snooze"}, 422), ({"do": "comment"}, 422)):
        assert refusal(reviewer.post(f"{where}/assignment", body))[0] == status
    assert said(world) == 0


@proves("R-APPR-9", part="bulk decision by program")
def test_a_program_decides_only_what_may_stand_together(world: World, reviewer: Program) -> None:
    _, where = at_the_gate(world)
    shown = {"id": where.rpartition("/")[2], "packet_digest": reviewer.get(where).json()["packet_digest"]}
    body = {"decision": "approve", "requests": [shown]}
    assert refusal(reviewer.post("/approvals/decisions", body)) == (422, "decision-invalid")
    assert refusal(reviewer.post("/approvals/decisions", {**body, "requests": []}))[0] == 400
    assert refusal(reviewer.post("/approvals/decisions", {**body, "decision": "edit"}))[0] == 400
    assert said(world) == 0


@proves("R-APPR-5", part="an edit that needs more people says so by program")
def test_edit_that_moves_more_says_how_many_must_agree_and_how_many_are_missing(
    world: World, reviewer: Program, company: Company
) -> None:
    run, where = at_the_gate(world)
    asked = reviewer.get(where).json()
    assert (asked["quorum"], asked["edits"]) == (1, [])
    arguments = {**asked["action"]["arguments"], "amount": "250.00"}
    body = {"decision": "edit", "arguments": arguments}
    first = reviewer.post(f"{where}/decisions", body).json()
    assert (first["status"], first["quorum"], first["offers"]) == ("pending", 2, [])
    (edit,) = first["edits"]
    assert edit["arguments"] == arguments
    assert (edit["quorum"], edit["agreed"], edit["missing"]) == (2, 1, 1)
    (row,) = reviewer.get("/approvals", {"run": str(run)}).json()["results"]
    assert row["quorum"] == 2
    second = program(world.id, Role.REVIEWER)
    seen = second.get(where).json()
    assert "edit" in seen["offers"]
    assert (seen["quorum"], seen["edits"][0]["missing"], seen["packet"]["who"]["quorum"]) == (2, 1, 1)
    done = second.post(f"{where}/decisions", {"decision": "edit", "arguments": edit["arguments"]}).json()
    assert (done["status"], done["outcome"], done["edits"]) == ("decided", "edit", [])
    world.drive(run)
    # It was sent, once; the company, whose order is of less, refuses it.
    assert [one["method"] for one in company.requests("payments")].count("POST") == 1
    with tenant_transaction(world.id):
        granted = Request.objects.get(run_id=run).granted_action
        assert GrantUse.objects.get().action_digest == granted != ""
