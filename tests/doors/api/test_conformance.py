"""Requests drawn from the OpenAPI document, good ones and bad ones, and every answer held against it by every
check of schemathesis: as administrator, reviewer and client.

A new route's schema is derived, not written: see docs/api.md. What is refused though it is as documented
stands with its reason in tests/doors/api/drawn.py.
"""

import socket
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from pytest_django.fixtures import Settings
from schemathesis import GenerationMode

from tenancy.core.roles import Role
from tests.doors.api.doors import things_of
from tests.doors.api.drawn import covering, drawing, hold, modes_of, operations
from tests.doors.api.program import program
from tests.factories.world import World
from tests.proves import proves

pytestmark = pytest.mark.slow

EXAMPLES = 20
NARROW_EXAMPLES = 5
GROUPS = 6
OPERATIONS = operations()


@pytest.fixture(autouse=True)
def drawn_anywhere_alike(settings: Settings) -> Iterator[None]:
    """Draws that depend neither on what else is imported nor on what the network answers."""
    settings.ALLOWED_HOSTS = ["*"]
    real = socket.getaddrinfo

    def answers(host: Any, *more: Any, **named: Any) -> Any:
        if host is None or host in ("localhost", b"localhost") or ":" in host or host[-1:].isdigit():
            return real(host, *more, **named)
        raise socket.gaierror(socket.EAI_NONAME, "nobody answers for names here")

    with (
        mock.patch.object(socket, "getaddrinfo", answers),
        mock.patch.object(providers, "_get_local_constants", return_value=Constants()),
    ):
        yield


@proves("R-API-1", part="the document is exact")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_answer_is_one_the_document_knows(world: World, name: str) -> None:
    things = things_of(world)
    key = {"Authorization": f"Bearer {program(world.id, Role.ADMIN).clear}"}
    for case in covering(OPERATIONS[name]):
        if case.meta.generation.mode.is_positive:
            case.path_parameters |= _real(case, things)
        hold(name, case, key)
    for mode in modes_of(OPERATIONS[name]):
        draw(name, mode, EXAMPLES, key, things)


@proves("R-API-1", part="the document is exact for narrow keys")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("group", range(GROUPS))
@pytest.mark.parametrize("role", [Role.CLIENT, Role.REVIEWER])
def test_every_answer_to_a_narrow_key_is_one_the_document_knows(world: World, role: Role, group: int) -> None:
    things = things_of(world)
    key = {"Authorization": f"Bearer {program(world.id, role).clear}"}
    for name in sorted(OPERATIONS)[group::GROUPS]:
        for mode in modes_of(OPERATIONS[name]):
            draw(name, mode, NARROW_EXAMPLES, key, things)


@proves("R-API-1", part="an ended run as the document has it")
def test_what_an_ended_run_shows_is_as_the_document_has_it(world: World) -> None:
    run = world.submit("tool-loop", "How much is (12 + 30) * 2?")
    assert world.drive(run).terminal_code == "SUCCESS"
    key = {"Authorization": f"Bearer {program(world.id, Role.ADMIN).clear}"}
    for name in ("get_run", "get_run_result", "list_run_events", "export_run_trace"):
        case = OPERATIONS[name].Case(path_parameters={"run_id": str(run)})
        assert case.call_and_validate(headers=key).status_code == 200
    replay = OPERATIONS["replay_run"].Case(
        path_parameters={"run_id": str(run)}, body={}, media_type="application/json"
    )
    assert replay.call_and_validate(headers=key).json()["matches"]


def draw(name: str, mode: GenerationMode, examples: int, key: dict[str, str], things: dict[str, str]) -> None:
    """Draw requests, about real things and about things that are not there, and hold each answer."""

    @drawing(examples)
    @given(case=OPERATIONS[name].as_strategy(generation_mode=mode), real=st.booleans())
    def held(case: Any, *, real: bool) -> None:
        if real:
            case.path_parameters |= _real(case, things)
            if name == "submit_task" and mode.is_positive:
                case.body = {"goal": case.body["goal"], "workflow": "tool-loop"}
        hold(name, case, key)

    held()


def _real(case: Any, things: dict[str, str]) -> dict[str, str]:
    return {part: things[part] for part in case.path_parameters if part in things}
