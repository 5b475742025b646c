"""Queues for programs (R-API-3, R-SEC-11)."""

import pytest

from tenancy.actions import create_key
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry, Membership
from tests.doors.api.program import Program, pointers, refusal
from tests.factories.approvals import open_desk
from tests.factories.world import World
from tests.proves import proves


@pytest.fixture
def admin(world: World) -> Program:
    """The administrator's program."""
    return Program(clear=create_key(world.id, Role.ADMIN, owner=world.people.admin.person).clear)


@proves("R-API-3", part="queues")
@proves("R-SEC-6", part="queues by program")
def test_a_queue_is_added_described_closed_and_opened_by_program(world: World, admin: Program) -> None:
    made = admin.post("/queues", {"name": "claims", "description": "Claims", "reason": "New team"})
    assert made.status_code == 201
    shown = made.json()
    assert (shown["name"], shown["requests"], shown["keeps_open"], shown["closed_at"]) == (
        "claims", 0, [], None,
    )  # fmt: skip
    assert shown["people"] > 0
    assert "claims" in [row["name"] for row in admin.get("/queues").json()["results"]]
    said = admin.send("patch", "/queues/claims", {"description": "Of customers", "reason": "More"})
    assert (said.status_code, said.json()["description"]) == (200, "Of customers")
    assert admin.get("/queues/claims").json() == said.json()
    closed = admin.post("/queues/claims/close", {"reason": "Unused"})
    assert closed.status_code == 200
    assert closed.json()["closed_at"] is not None
    assert admin.get("/queues").json()["results"][-1]["name"] == "claims"
    opened = admin.post("/queues/claims/reopen", {"reason": "Needed"})
    assert (opened.status_code, opened.json()["closed_at"]) == (200, None)
    with tenant_transaction(world.id):
        lines = AuditEntry.objects.filter(object="queue:claims").order_by("at")
        assert list(lines.values_list("verb", "reason")) == [
            ("queue.add", "New team"), ("queue.describe", "More"), ("queue.close", "Unused"),
            ("queue.reopen", "Needed"),
        ]  # fmt: skip


@proves("R-SEC-11", part="a queue that something names is not closed, by program")
def test_closing_a_queue_in_use_is_refused_with_what_names_it(world: World, admin: Program) -> None:
    admin.post("/queues", {"name": "claims", "description": "", "reason": "New team"})
    with tenant_transaction(world.id):
        Membership.objects.filter(person=world.people.approver.person).update(queues=["claims"])
    with open_desk(world.house) as desk:
        desk.ask(queue="claims")
    answer = admin.post("/queues/claims/close", {"reason": "Unused"})
    assert refusal(answer) == (409, "queue-in-use")
    assert answer.json()["data"]["named_by"] == ["the reviewer as reviewer", "1 open request"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": "Claims"}, "/name"),
        ({"name": "finance"}, "/name"),
        ({"name": "*"}, "/name"),
        ({"description": "x" * 301}, "/description"),
        ({"description": "two\nlines"}, "/description"),
        ({"reason": ""}, "/reason"),
    ],
)
def test_a_queue_that_is_none_is_refused_with_its_place(
    admin: Program, body: dict[str, str], pointer: str
) -> None:
    answer = admin.post("/queues", {"name": "claims", "description": "", "reason": "New", **body})
    assert (answer.status_code, pointers(answer)) == (400, [pointer])


@pytest.mark.parametrize("path", ["/queues/rare", "/queues/rare/close", "/queues/rare/reopen"])
def test_a_queue_that_is_not_there_is_not_found(admin: Program, path: str) -> None:
    answer = admin.get(path) if path == "/queues/rare" else admin.post(path, {"reason": "x"})
    assert refusal(answer)[0] == 404


@proves("R-SEC-11", part="a member is not given an unknown queue by program")
def test_a_member_with_an_unknown_queue_is_refused_with_its_place(world: World, admin: Program) -> None:
    answer = admin.post(
        f"/members/{world.people.operator.person.id}/roles",
        {"role": "reviewer", "queues": ["finance", "tresury"], "reason": "Helps"},
    )
    assert (answer.status_code, pointers(answer)) == (400, ["/queues/1"])
    (fault,) = answer.json()["errors"]
    assert fault["code"] == "unknown-queue"
    assert "administrator adds or opens it" in fault["detail"]


@proves("R-SEC-11", part="a boundary is not published with an unknown queue by program")
def test_a_boundary_with_an_unknown_queue_is_refused_and_no_proposal_kept(
    world: World, admin: Program
) -> None:
    text = "slug: wide\nprofile: support\nescalation_routes: {default: tresury}\n"
    answer = admin.post("/boundaries", {"yaml": text, "reason": "Ours"})
    assert (answer.status_code, pointers(answer)) == (400, ["/escalation_routes/default"])
    assert admin.get("/change-requests").json()["results"] == []
