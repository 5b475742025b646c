"""Narrow keys (R-SEC-11): what a key does not reach is not there, at every door."""

from typing import Any
from uuid import UUID

import pytest
from django.test import Client, override_settings

from orchestrator.runs.models.run import Run, RunSignal
from tenancy.actions import create_key
from tenancy.actions.keys import rotate_key
from tenancy.core.reach import KeyLimits, Reach, RunReach
from tenancy.core.roles import SCOPES, Role
from tenancy.db.tenant_context import current_reach, restrict_to_reach, tenant_transaction
from tenancy.rest.authentication import caller_of
from tests.doors.api.bodies import BODIES
from tests.doors.api.doors import DOORS, things_of
from tests.doors.api.program import Program, program, refusal
from tests.doors.api.test_foreign import missing, shape
from tests.factories.world import World
from tests.proves import proves

TASK = {"workflow": "tool-loop", "goal": {"objective": "How much is (12 + 30) * 2?"}}
# What a run hangs on these names; the others name what is the whole tenant's.
OF_A_RUN = ("run_id", "request_id", "memory_id", "review_id")
NARROW_ROLES = (Role.CLIENT, Role.OPERATOR, Role.REVIEWER, Role.AUDITOR)
LIMITS = ({"runs": RunReach.OWN}, {"workflows": ("tool-*",)})


def submitted(who: Program, body: dict[str, Any] = TASK, *, once: str | None = None) -> str:
    """The run of a task that a program submits."""
    answer = who.post("/tasks", body, once=once)
    assert answer.status_code == 202, answer.content
    run: str = answer.json()["run"]["id"]
    return run


def listed(who: Program, path: str = "/runs") -> list[str]:
    """The ids that a list answers."""
    return [row["id"] for row in who.get(path).json()["results"]]


def names_a_run(door: tuple[str, str]) -> bool:
    """Whether the address names a run, or what hangs on one."""
    return any("{" + name + "}" in door[1] for name in OF_A_RUN)


def ask(who: Program, door: tuple[str, str], names: dict[str, str]) -> Any:
    """What a door answers to these names."""
    return who.send(door[0], "/" + door[1].format(**names), BODIES.get(door[1]))


@proves("R-SEC-11", part="what is out of reach is answered like a missing one, at every door")
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("role", NARROW_ROLES)
def test_every_door_with_the_run_of_another_answers_as_with_none(
    world: World, role: Role, limits: dict[str, Any]
) -> None:
    things, who = things_of(world), program(world.id, role, **limits)
    doors = [door for door, scope in DOORS.items() if scope in SCOPES[role] and names_a_run(door)]
    assert len(doors) > 8
    for door in doors:
        found, absent = ask(who, door, things), ask(who, door, missing())
        assert refusal(found) == (404, "not-found"), door
        assert shape(found) == shape(absent), door
    with tenant_transaction(world.id):
        assert not RunSignal.objects.exists()


@proves("R-SEC-11", part="lists, searches and counts tell of what is in reach alone")
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("role", NARROW_ROLES)
def test_no_list_tells_of_the_run_of_another(world: World, role: Role, limits: dict[str, Any]) -> None:
    things, who = things_of(world), program(world.id, role, **limits)
    lists = [door for door, scope in DOORS.items() if door[0] == "get" and scope in SCOPES[role]]
    for door in lists:
        if names_a_run(door):
            continue
        for query in ("", f"?q={things['run_id']}", f"?run={things['run_id']}"):
            answer = who.get("/" + door[1].format(**things) + query)
            for name in OF_A_RUN:
                assert things[name] not in answer.content.decode(), (door, query, name)
    for path in ("/runs", "/approvals", "/memory", "/reviews"):
        assert listed(who, path) == [], path
    assert refusal(who.get("/budgets")) == (403, "reach-missing")
    assert refusal(who.get("/budgets/figures")) == (403, "reach-missing")


def test_the_same_doors_show_them_to_a_key_of_the_tenant(world: World) -> None:
    """Were they empty for everybody, the sweeps would prove nothing."""
    things, who = things_of(world), program(world.id, Role.AUDITOR)
    assert listed(who) == [things["run_id"]]
    assert listed(who, "/approvals") == [things["request_id"]]
    assert listed(who, "/memory") == [things["memory_id"]]
    assert listed(who, "/reviews") == [things["review_id"]]
    assert who.get("/budgets").status_code == 200


@proves("R-SEC-11", part="a client has its own runs")
def test_a_client_key_submits_reads_cancels_and_exports_its_own(world: World) -> None:
    who, other = (Program(clear=create_key(world.id, Role.CLIENT).clear) for _ in range(2))
    run = submitted(who)
    world.drive(UUID(run))
    assert listed(who) == [run]
    assert listed(other) == []
    for path in ("", "/events", "/result", "/plan", "/trace", "/stream", "/checkpoints"):
        assert who.get(f"/runs/{run}{path}").status_code == 200, path
        assert other.get(f"/runs/{run}{path}").status_code == 404, path
    assert who.post(f"/runs/{run}/replay").status_code == 200
    second = submitted(who)
    assert other.post(f"/runs/{second}/cancel").status_code == 404
    assert who.post(f"/runs/{second}/cancel").status_code == 202


@proves("R-SEC-11", part="a client is given more where somebody says so")
def test_a_client_key_of_the_tenants_runs_reads_all(world: World) -> None:
    run = world.submit("tool-loop", "How much is 1 + 1?")
    assert listed(program(world.id, Role.CLIENT, runs=RunReach.TENANT)) == [str(run)]


@proves("R-SEC-11", part="by workflow")
def test_a_key_of_some_workflows_submits_and_reads_no_others(world: World) -> None:
    who = program(world.id, Role.OPERATOR, workflows=("tool-*",))
    run = submitted(who)
    other = world.submit("support-refund", "Refund something")
    theirs = world.submit("tool-loop", "How much is 1 + 1?")
    assert set(listed(who)) == {run, str(theirs)}
    answer = who.post("/tasks", {**TASK, "workflow": "support-refund"})
    assert refusal(answer) == (403, "workflow-out-of-reach")
    assert who.post(f"/runs/{other}/pause").status_code == 404
    assert who.post(f"/runs/{theirs}/pause").status_code == 202


@proves("R-SEC-11", part="an underscore is itself")
def test_a_pattern_fits_no_more_than_it_says(world: World) -> None:
    world.submit("tool-loop", "How much is 1 + 1?")
    assert listed(program(world.id, Role.AUDITOR, workflows=("tool_loop",))) == []
    assert len(listed(program(world.id, Role.AUDITOR, workflows=("t*p",)))) == 1


@proves("R-SEC-11", part="a rotated key keeps its runs and what it was answered")
def test_a_rotated_key_reads_its_runs_and_repeats_nothing(world: World) -> None:
    old = create_key(world.id, Role.CLIENT)
    run = submitted(Program(clear=old.clear), once="k")
    who = Program(clear=rotate_key(world.id, old.key.id).clear)
    assert listed(who) == [run]
    assert submitted(who, once="k") == run
    assert listed(who) == [run]
    assert refusal(Program(clear=old.clear).get("/runs")) == (401, "key-revoked")


@proves("R-SEC-11", part="an idempotent answer is its principal's")
def test_an_answer_under_a_key_is_not_given_to_another(world: World) -> None:
    one, other = (Program(clear=create_key(world.id, Role.CLIENT).clear) for _ in range(2))
    assert submitted(one, once="same") != submitted(other, once="same")


@proves("R-SEC-11", part="the tenant's rates count all of its runs")
def test_a_narrow_key_is_counted_against_the_tenants_rate(world: World) -> None:
    rates = {**BODIES["api/v1/rates"], "concurrent_runs": 1}
    assert program(world.id, Role.ADMIN).send("put", "/rates", rates).status_code == 200
    world.submit("tool-loop", "How much is 1 + 1?")
    answer = Program(clear=create_key(world.id, Role.CLIENT).clear).post("/tasks", TASK)
    assert refusal(answer) == (429, "rate-reached")


@proves("R-SEC-11", part="the reach ends with the request")
def test_the_reach_of_a_key_ends_with_its_request(world: World) -> None:
    run = world.submit("tool-loop", "How much is 1 + 1?")
    assert listed(Program(clear=create_key(world.id, Role.CLIENT).clear)) == []
    assert current_reach() is None
    with tenant_transaction(world.id):
        assert Run.objects.filter(id=run).exists()


@proves("R-SEC-11", part="the database holds the reach")
def test_no_run_of_another_principal_is_written_within_a_reach(world: World) -> None:
    run = world.submit("tool-loop", "How much is 1 + 1?")
    mine = Reach(principal=caller_of(create_key(world.id, Role.CLIENT).clear).principal)
    with restrict_to_reach(mine), tenant_transaction(world.id):
        assert Run.objects.count() == 0
        assert Run.objects.filter(id=run).update(reason="seen") == 0


@proves("R-SEC-11", part="by the address behind trusted proxies")
def test_a_key_for_some_addresses_reads_the_address_that_trusted_proxies_wrote(world: World) -> None:
    key = create_key(world.id, Role.CLIENT, limits=KeyLimits(addresses=("203.0.113.0/24",)))
    bearer = {"Authorization": f"Bearer {key.clear}"}

    def status(peer: str, forwarded: str | None) -> int:
        headers = bearer | ({"X-Forwarded-For": forwarded} if forwarded is not None else {})
        answered: int = Client(REMOTE_ADDR=peer).get("/api/v1/runs", headers=headers).status_code
        return answered

    assert status("203.0.113.9", None) == 200
    assert status("198.51.100.1", "203.0.113.9") == 401
    with override_settings(ALLAUTH_TRUSTED_PROXY_COUNT=1):
        assert status("127.0.0.1", "203.0.113.9") == 200
        assert status("127.0.0.1", "203.0.113.9, 198.51.100.1") == 401
        assert status("203.0.113.9", None) == 401
    with override_settings(ALLAUTH_TRUSTED_PROXY_COUNT=2):
        assert status("127.0.0.1", "203.0.113.9, 10.0.0.1") == 200
        assert status("127.0.0.1", "203.0.113.9") == 401


@proves("R-SEC-11", part="a client does not inspect the tenant")
def test_a_client_reads_no_private_places_and_its_person_no_people_keys_or_audit_log(world: World) -> None:
    assert refusal(program(world.id, Role.CLIENT).get("/private-places")) == (403, "scope-missing")
    for role in (Role.OPERATOR, Role.REVIEWER, Role.AUDITOR):
        assert program(world.id, role).get("/private-places").status_code == 200
