"""Who may, at every door of the table: no key 401, a key without the scope 403, no trailing slash."""

import pytest
from django.conf import settings

from orchestrator.runs.models.run import Run, RunSignal
from orchestrator.runs.models.task import Task
from tenancy.core.roles import SCOPES, Role
from tenancy.db.tenant_context import tenant_transaction
from tests.doors.api.bodies import BODIES
from tests.doors.api.doors import DOORS, METHODS, things_of
from tests.doors.api.program import Program, program, refusal
from tests.factories.world import World
from tests.proves import proves

pytestmark = pytest.mark.slow

NAMES = {"run_id": "x", "request_id": "x", "circuit_id": "x", "slug": "x", "name": "x", "number": "1"}
NAMES |= {"corpus": "x", "document": "x", "secret": "x", "model": "x", "queue": "x"}
NAMES |= {"server": "x", "webhook_id": "x", "delivery_id": "x", "proposal_id": "x"}
NAMES |= {"person_id": "x", "role": "auditor", "key_id": "x"}
NAMES |= {"tool_proposal_id": "x", "memory_id": "x", "file": "x", "review_id": "x"}
# What asks another server, or cannot be done twice; each is tried by a test of its own.
# A proposal is settled once.
ELSEWHERE = (
    *(
        "decisions",
        "undo",
        "assignment",
        "reveal",
        "edit-preview",
        "retire",
        "mcp-servers",
        "refresh",
        "remove",
        "http-tools",
        "webhooks",
    ),
    *("reveal", "agree", "drop", "keep", "refuse", "quarantine", "take", "release", "answer", "retry"),
    *("reconcile", "look-up"),
    *("members", "link", "confirm", "deactivate", "roles"),
)
LOCKED = {door: scope for door, scope in DOORS.items() if scope is not None}


def path_of(address: str, names: dict[str, str] = NAMES) -> str:
    """A whole path."""
    return "/" + address.format(**names)


@proves("R-API-1", part="Bearer key at every door")
def test_without_a_key_every_locked_door_is_401(world: World) -> None:
    for method, address in LOCKED:
        answer = Program().send(method, path_of(address))
        assert refusal(answer)[0] == 401, address
        assert answer["WWW-Authenticate"].startswith("Bearer")


@proves("R-SEC-2", part="scopes at every door")
def test_a_key_opens_exactly_the_doors_of_its_scopes(world: World) -> None:
    things = things_of(world)
    for role in Role:
        who = program(world.id, role)
        for (method, address), scope in LOCKED.items():
            if scope in SCOPES[role]:
                continue
            answer = who.client.generic(
                method, path_of(address, things), b"{}", "application/json", headers=who.headers({})
            )
            assert refusal(answer) == (403, "scope-missing"), (role, address)
            assert scope.value in answer.json()["detail"]
    with tenant_transaction(world.id):
        assert (Task.objects.count(), Run.objects.count(), RunSignal.objects.count()) == (1, 1, 0)


@proves("R-SEC-2", part="every scope suffices where it is asked for")
def test_a_key_with_the_scope_gets_past_the_lock(world: World) -> None:
    things = things_of(world)
    for role in Role:
        who = program(world.id, role)
        for (method, address), scope in LOCKED.items():
            if scope not in SCOPES[role] or address.endswith(ELSEWHERE):
                continue
            path = path_of(address, things)
            answer = who.send(method, path, BODIES.get(address))
            assert answer.status_code in {200, 201, 202, 204}, (role, address, answer.content)


def test_open_doors_ask_for_no_key(world: World) -> None:
    # The metrics ask for the operator's token (test_rate.py), which no key is.
    for door in set(DOORS) - set(LOCKED) - {("get", "metrics")}:
        assert Program().send(*door[:1], path_of(door[1])).status_code == 200, door


@proves("R-API-1", part="no trailing slash")
def test_no_address_ends_in_a_slash(world: World) -> None:
    who = program(world.id, Role.ADMIN)
    for method, address in DOORS:
        assert not address.endswith("/")
        assert refusal(who.send(method, path_of(address) + "/")) == (404, "not-found"), address
    assert settings.APPEND_SLASH is False


def test_another_method_is_405_and_says_which_there_are(world: World) -> None:
    who = program(world.id, Role.ADMIN)
    for address in sorted({address for _, address in LOCKED}):
        there = {method for method, known in DOORS if known == address}
        for method in set(METHODS) - there:
            answer = who.client.generic(
                method, path_of(address), b"{}", "application/json", headers=who.headers({})
            )
            assert refusal(answer) == (405, "method-not-allowed"), (method, address)
            allowed = {word.strip().lower() for word in answer["Allow"].split(",")}
            assert allowed - {"head", "options"} == there


def test_what_cannot_be_given_in_the_asked_form_is_406(auditor: Program) -> None:
    answer = auditor.get("/runs", headers={"Accept": "application/xml"})
    assert answer.status_code == 406
    assert answer.json()["code"] == "not-acceptable"
