"""Taking a yes back by program, and how long that can be done."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from approvals.models import Request
from tenancy.core.roles import Role
from tests.conftest import House
from tests.doors.api.program import Program, pointers, program, refusal
from tests.factories.approvals import Desk, open_desk
from tests.factories.undoing import let_undo, pass_time
from tests.proves import proves


@pytest.fixture
def desk(house: House) -> Iterator[Desk]:
    """The tenant's desk, without runs behind it."""
    with open_desk(house) as opened:
        yield opened


LOW: dict[str, Any] = {"risk": "read_only", "has_amount": False}
WINDOW = "/approvals/undo-window"


@proves("R-APPR-14", part="a program takes its yes back")
def test_a_program_is_told_until_when_and_takes_it_back(desk: Desk, superuser: psycopg.Connection) -> None:
    let_undo(desk.id, desk.house.people.admin)
    mine, other = (program(desk.id, Role.REVIEWER) for _ in range(2))
    request = desk.ask(**LOW)
    where = f"/approvals/{request.id}"
    kept = mine.post(f"{where}/decisions", {"decision": "approve"})
    assert (kept.status_code, kept.json()["status"]) == (202, "pending")
    assert kept.json()["deferred"]["decision"] == "approve"
    yes = kept.json()["deferred"]["id"]
    assert mine.get(where).json()["deferred"] == kept.json()["deferred"]
    assert mine.get(where).json()["offers"] == kept.json()["offers"] == []
    assert refusal(other.post(f"{where}/decisions", {"decision": "reject"})) == (409, "yes-stands")
    assert refusal(mine.post(f"{where}/undo", {"deferred": str(request.id)})) == (409, "nothing-to-undo")
    assert refusal(other.post(f"{where}/undo")) == (403, "not-yours")
    back = mine.post(f"{where}/undo", {"deferred": yes}, once="undo-1")
    assert (back.status_code, back.json()["deferred"]) == (200, None)
    assert "approve" in back.json()["offers"]
    assert mine.post(f"{where}/undo", {"deferred": yes}, once="undo-1").json() == back.json()
    assert refusal(mine.post(f"{where}/undo")) == (409, "nothing-to-undo")
    assert mine.post(f"{where}/decisions", {"decision": "approve"}).status_code == 202
    pass_time(superuser, request)
    assert refusal(mine.post(f"{where}/undo")) == (409, "nothing-to-undo")


def test_several_at_once_are_told_which_can_be_taken_back(desk: Desk) -> None:
    mine = program(desk.id, Role.REVIEWER)
    at_once = desk.ask(**LOW)

    def say(*asked: Request) -> dict[str, Any]:
        shown = [{"id": str(one.id), "packet_digest": one.packet_digest} for one in asked]
        answer = mine.post("/approvals/decisions", {"decision": "approve", "requests": shown})
        (told,) = answer.json()["results"]
        return dict(told)

    assert (say(at_once)["status"], say(at_once)["deferred"]) == ("decided", None)
    let_undo(desk.id, desk.house.people.admin)
    request = desk.ask(**LOW)
    told = say(request)
    assert (told["status"], told["error"]) == ("pending", None)
    back = mine.post(f"/approvals/{request.id}/undo", {"deferred": told["deferred"]["id"]})
    assert back.status_code == 200


def test_what_is_no_request_has_nothing_to_undo(auditor: Program) -> None:
    assert refusal(auditor.post("/approvals/x/undo")) == (404, "not-found")


@proves("R-API-2", part="for how long a yes can be taken back")
def test_the_window_is_read_and_set_by_its_version(desk: Desk) -> None:
    admin = program(desk.id, Role.ADMIN)
    now = admin.get(WINDOW)
    assert (now.json(), now["ETag"]) == ({"seconds": 0, "version": 0, "reason": "", "at": None}, '"0"')
    body = {"seconds": 5, "reason": "Fingers slip"}
    made = admin.send("put", WINDOW, body, headers={"If-Match": '"0"'})
    assert (made.status_code, made.json()["version"], made["ETag"]) == (200, 1, '"1"')
    assert refusal(admin.send("put", WINDOW, body, headers={"If-Match": '"0"'})) == (412, "stale")
    assert refusal(program(desk.id, Role.REVIEWER).send("put", WINDOW, body))[0] == 403


@pytest.mark.parametrize(
    ("body", "pointer"),
    [({"seconds": 11, "reason": "x"}, "/seconds"), ({"seconds": 1, "reason": " "}, "/reason"),
     ({"seconds": 1.5, "reason": "x"}, "/seconds"), ({"seconds": 1}, "/reason")],
)  # fmt: skip
def test_what_is_no_window_is_refused(desk: Desk, body: dict[str, Any], pointer: str) -> None:
    answer = program(desk.id, Role.ADMIN).send("put", WINDOW, body)
    assert (refusal(answer), pointers(answer)) == ((400, "invalid-input"), [pointer])
