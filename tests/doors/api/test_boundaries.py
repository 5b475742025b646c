"""Boundaries over HTTP: look, publish, allow a tool, wait for a second person (R-API-3, R-GRAPH-11)."""

from typing import Any

import pytest

from tenancy.core.roles import Role
from tests.doors.api.program import Program, pointers, program, refusal
from tests.factories.tenancy import make_somebody
from tests.factories.world import World
from tests.proves import proves

AT = "/boundaries/tool-loop-default"
YAML = 'slug: mine\nprofile: support\ntools: [{name: "clock.*"}]\n'


@pytest.fixture
def admin(world: World) -> Program:
    """May do everything; the only administrator until another is made."""
    return program(world.id, Role.ADMIN, owner=world.people.admin.person)


def changed(admin: Program, **changes: Any) -> dict[str, Any]:
    """The document in force with changes, and why."""
    return {"document": {**admin.get(AT).json()["document"], **changes}, "reason": "Ours."}


@proves("R-GRAPH-11", part="API: publish")
def test_program_publishes_a_boundary_and_reads_its_versions(admin: Program) -> None:
    before = admin.get(AT)
    assert before.json()["workflows"] == ["tool-loop"]
    made = admin.post("/boundaries", changed(admin, refusal_limit=1))
    assert (made.status_code, made.json()["version"]) == (201, 2)
    again = admin.post("/boundaries", changed(admin))
    assert (again.status_code, again.json()["version"]) == (200, 2)
    rows = admin.get(f"{AT}/versions").json()["results"]
    assert [(row["version"], row["document"]["refusal_limit"]) for row in rows] == [(2, 1), (1, 3)]
    assert "tool-loop-default" in [row["slug"] for row in admin.get("/boundaries").json()["results"]]
    tag = {"If-None-Match": admin.get(AT)["ETag"]}
    assert admin.get(AT, headers=tag).status_code == 304
    late = admin.send(
        "post", "/boundaries", changed(admin, refusal_limit=2), headers={"If-Match": before["ETag"]}
    )
    assert refusal(late) == (412, "stale")


@proves("R-GRAPH-11", part="API: a wider one waits for a second administrator")
def test_program_that_widens_a_boundary_waits_for_a_second_one(admin: Program, world: World) -> None:
    second = program(world.id, Role.ADMIN, owner=make_somebody(world.house.tenant, Role.ADMIN).person)
    waiting = admin.post(f"{AT}/tools", {"tool": "files.*", "risk_ceiling": "read_only", "reason": "Ours."})
    assert (waiting.status_code, waiting.json()["kind"]) == (202, "boundary")
    assert waiting.json()["weaker"] == ["It allows files.* up to read_only."]
    agree = f"/change-requests/{waiting.json()['id']}/agree"
    assert refusal(admin.post(agree, {"reason": "Mine"})) == (403, "own-proposal")
    agreed = second.post(agree, {"reason": "Yes"})
    assert (agreed.status_code, agreed.json()["version"]) == (200, 2)
    assert agreed.json()["document"]["tools"][0]["name"] == "files.*"


def test_program_publishes_a_boundary_from_its_text(admin: Program) -> None:
    made = admin.post("/boundaries", {"yaml": YAML, "reason": "Ours."})
    assert (made.status_code, made.json()["slug"], made.json()["version"]) == (201, "mine", 1)
    assert made.json()["document"]["budget"]["model_turns"] == "20"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"yaml": "slug: [", "reason": "?"}, "/yaml"),
        ({"yaml": "slug: mine\nprofile: generous\n", "reason": "?"}, "/profile"),
        ({"yaml": YAML.replace("clock", "clocks"), "reason": "?"}, "/tools/0/name"),
        ({"yaml": YAML, "document": {}, "reason": "?"}, "/document"),
        ({"yaml": YAML}, "/reason"),
    ],
)
def test_what_is_no_boundary_is_refused_by_place(admin: Program, body: dict[str, Any], pointer: str) -> None:
    wrong = admin.post("/boundaries", body)
    assert (wrong.status_code, pointers(wrong)) == (400, [pointer])
    assert "mine" not in [row["slug"] for row in admin.get("/boundaries").json()["results"]]
