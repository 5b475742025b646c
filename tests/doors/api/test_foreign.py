"""The sweep: every address with the other tenant's ids, in the path, in the body, in a filter (Z1-Z3)."""

import re
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.models import Decision
from orchestrator.runs.models.run import Run, RunSignal
from tenancy.core.roles import Role
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doors.api.bodies import BODIES
from tests.doors.api.doors import DOORS, NOBODYS, addresses, things_of
from tests.doors.api.platform_doors import PLATFORM_DOORS
from tests.doors.api.program import Program, program, refusal
from tests.factories.tenancy import make_people
from tests.factories.world import World, make_world
from tests.proves import proves

AN_ID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")
WITH_IDS = sorted(door for door in DOORS if "{" in door[1])


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """Two furnished tenants with an all-powerful program each, and what there is at the other's."""

    mine: World
    theirs: World
    me: Program
    them: Program
    things: dict[str, str]


@pytest.fixture
def neighbours(house: House, world: World) -> Neighbours:
    """The house and the one next door."""
    elsewhere = house.people.other_tenant
    theirs = make_world(House(tenant=elsewhere, people=make_people(elsewhere)))
    return Neighbours(
        mine=world, theirs=theirs, me=program(world.id, Role.ADMIN), them=program(theirs.id, Role.ADMIN),
        things=things_of(theirs),
    )  # fmt: skip


def missing() -> dict[str, str]:
    """Names of nothing, as long as the real ones."""
    ids = (
        "run_id", "request_id", "circuit_id", "webhook_id", "delivery_id", "proposal_id", "memory_id",
        "review_id", "tool_proposal_id", "person_id", "key_id",
    )  # fmt: skip
    return {name: str(fresh_id()) for name in ids} | NOBODYS


def knock(who: Program, door: tuple[str, str], names: dict[str, str]) -> Any:
    """What a door answers to these names."""
    method, address = door
    path = "/" + address.format(**names)
    return who.send(method, path, BODIES.get(address))


def shape(response: Any) -> tuple[int, dict[str, Any], dict[str, str]]:
    """A response as far as it may tell one case from another."""
    body = response.json() | {"instance": ""}
    # The caller's rate counts its requests, whatever they ask for; without a counter in time it is not said.
    headers = {name: value for name, value in response.items() if not name.startswith("RateLimit")}
    return response.status_code, body, headers


@proves("Z1", part="no address is left out")
def test_the_sweep_knows_every_address_of_the_house() -> None:
    assert addresses() == set(DOORS) | PLATFORM_DOORS


@proves("Z1", part="every address with foreign ids")
def test_a_foreign_id_is_answered_like_a_missing_one(neighbours: Neighbours) -> None:
    for door in WITH_IDS:
        foreign, absent = (knock(neighbours.me, door, names) for names in (neighbours.things, missing()))
        assert refusal(foreign) == (404, "not-found"), door
        assert shape(foreign) == shape(absent), door


@pytest.mark.slow
@proves("Z1", part="the same work")
def test_a_foreign_id_costs_the_same_statements_as_a_missing_one(neighbours: Neighbours) -> None:
    """What a clock would have to tell apart, without the clock's noise."""

    def statements(door: tuple[str, str], names: dict[str, str]) -> list[str]:
        with CaptureQueriesContext(connection) as asked:
            knock(neighbours.me, door, names)
        assert len(asked) > 3
        return [AN_ID.sub("?", query["sql"]).split(" WHERE ")[0] for query in asked.captured_queries]

    for door in WITH_IDS:
        knock(neighbours.me, door, missing())
        assert statements(door, neighbours.things) == statements(door, missing()), door


@proves("Z1", part="nothing is changed through a foreign id")
def test_a_foreign_post_leaves_no_trace_next_door(neighbours: Neighbours) -> None:
    run = neighbours.things["run_id"]
    with tenant_transaction(neighbours.theirs.id):
        before = Run.objects.get(id=run).version
    for door in WITH_IDS:
        knock(neighbours.me, door, neighbours.things)
    with tenant_transaction(neighbours.theirs.id):
        assert Run.objects.get(id=run).version == before
        assert not RunSignal.objects.filter(run_id=run).exists()
        assert not Decision.objects.exists()


def test_the_swept_ids_are_real_to_their_owner(neighbours: Neighbours) -> None:
    """Were they not, the sweep would prove nothing."""
    # A proposal is settled once, by whoever is first; an item that is answered is not taken; what rests on
    # nothing is not kept in memory; what nobody has said cannot be taken back, and what goes on not retried;
    # nothing is sealed in one's own request, nor is a question edited; nobody has seen the link of whoever
    # needs none; of a run that goes on nothing is reconciled afterwards.
    settled = (
        "decisions",
        "refresh",
        "drop",
        "keep",
        "quarantine",
        "take",
        "release",
        "undo",
        "retry",
        "reconcile",
        "look-up",
        "reveal",
        "edit-preview",
        "link",
        "confirm",
    )
    doors = [door for door in WITH_IDS if not door[1].endswith(settled)]
    # What is removed is asked for before.
    gone = ("deactivate", "roles/{role}/remove", "{key_id}/revoke")
    doors.sort(key=lambda door: (door[0] == "delete", *(door[1].endswith(one) for one in gone)))
    answers = {door: knock(neighbours.them, door, neighbours.things).status_code for door in doors}
    assert {door: status for door, status in answers.items() if status not in {200, 201, 202, 204}} == {}


@proves("Z2", part="foreign names in bodies")
@pytest.mark.parametrize("field", ["workflow", "boundary"])
def test_a_foreign_name_in_a_body_is_answered_like_a_missing_one(neighbours: Neighbours, field: str) -> None:
    def said(name: str) -> tuple[int, str]:
        answer = neighbours.me.post("/tasks", BODIES["api/v1/tasks"] | {field: name})
        return answer.status_code, answer.content.decode().replace(name, "?")

    foreign, absent = said(neighbours.things["slug"]), said(NOBODYS["slug"])
    assert foreign == absent
    assert foreign[0] == 422
    theirs = neighbours.them.post("/tasks", BODIES["api/v1/tasks"] | {field: neighbours.things["slug"]})
    assert theirs.status_code == 202


@proves("Z3", part="lists")
def test_every_list_shows_its_own_rows_only(neighbours: Neighbours) -> None:
    neighbours.mine.submit("tool-loop", "How much is 1 + 1?")
    for path, key in (("/runs", "id"), ("/approvals", "id")):
        mine, theirs = (
            {row[key] for row in who.get(path).json()["results"]} for who in (neighbours.me, neighbours.them)
        )
        assert theirs
        assert not mine & theirs
    for path, key, name in (("/workflows", "slug", "slug"), ("/tools", "name", "name")):
        rows = {
            who: {row[key] for row in who.get(path).json()["results"]}
            for who in (neighbours.me, neighbours.them)
        }
        assert rows[neighbours.them] - rows[neighbours.me] == {neighbours.things[name]}


@proves("Z3", part="filters and cursors")
def test_a_foreign_id_in_a_filter_or_a_cursor_finds_nothing_of_theirs(neighbours: Neighbours) -> None:
    run = neighbours.things["run_id"]
    neighbours.theirs.submit("tool-loop", "How much is 1 + 1?")
    following = neighbours.them.get("/runs", {"limit": 1}).json()["next"]
    for path in (f"/runs?q={run}", f"/approvals?run={run}", following):
        assert neighbours.me.get(path).json()["results"] == [], path
        assert neighbours.them.get(path).json()["results"] != [], path
