"""The walls around sealed values, standing, and torn down one by one: each scene is judged by what the
service received, and by what is kept."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest import mock

import psycopg
import pytest
from pytest_django import Settings

from orchestrator.core.calls import authorization
from orchestrator.llm.gateways import response
from orchestrator.tools.gateways import dispatcher
from orchestrator.tools.gateways.arguments import OpenedArguments
from orchestrator.worker.effects.sealed_arguments import RunArgumentOpener
from tests.doubles.crm import Crm
from tests.doubles.openai_server import calls
from tests.factories.foreign import onwards
from tests.factories.world import World
from tests.journeys.test_sealed_goals import with_reference
from tests.journeys.test_sealed_values import CALL, PASSWORD, Scripted, asking, change, rows_with, sent
from tests.proves import proves
from tests.sabotage.scenes import Unsafe, safe
from tests.shell.orchestrator.test_http_tools import crm as crm
from tests.shell.orchestrator.test_http_tools import declare
from tests.shell.orchestrator.test_http_tools import world as world

Sabotage = AbstractContextManager[Any]


def no_opening() -> Sabotage:
    """What is sealed is sent as its reference."""
    return mock.patch.object(
        RunArgumentOpener, "open_arguments", lambda self, arguments: OpenedArguments(arguments, {})
    )


def no_sealing() -> Sabotage:
    """A reply is kept as before there were sealed values: with marks, which nothing holds back."""
    kept = mock.patch.object(authorization, "validate_no_redactions", return_value=None)
    sends = mock.patch.object(dispatcher, "check_sendable", return_value=None)
    plain = mock.patch.object(response, "_seal_reply", lambda bounded, vault, keeper: bounded)
    return Together(kept, sends, plain)


def no_place() -> Sabotage:
    """A reference opens wherever the model writes it."""
    return mock.patch.object(authorization, "validate_sealed_references", return_value=None)


class Together(AbstractContextManager[None]):
    """Several patches as one."""

    def __init__(self, *patches: Any) -> None:
        self._patches = patches

    def __enter__(self) -> None:
        for patch in self._patches:
            patch.start()

    def __exit__(self, *_: object) -> None:
        for patch in self._patches:
            patch.stop()


def exact(
    world: World, crm: Crm, settings: Settings, superuser: psycopg.Connection, felled: Sabotage
) -> None:
    """A password is approved and sent."""
    declare(world, change(crm))
    with felled, asking(world, settings, Scripted(calls(CALL))) as run:
        world.decide(world.open_requests(run)[0], world.people.approver)
        onwards(world, run)
    safe(sent(crm) == [{"password": PASSWORD}], f"{sent(crm)} was sent in place of what was granted")
    safe(rows_with(superuser, "hunter2") == [], "a password stands in a row")


def placed(
    world: World, crm: Crm, settings: Settings, superuser: psycopg.Connection, felled: Sabotage
) -> None:
    """A model copies the reference of a password into a message."""
    declare(world, change(crm))
    copying = with_reference("crm.change_password", person="ada", password="x1", note="#")
    with felled, asking(world, settings, Scripted(calls(CALL), copying)) as run:
        world.decide(world.open_requests(run)[0], world.people.approver, "reject")
        onwards(world, run)
        for request in world.open_requests(run):
            world.decide(request, world.people.approver)
            onwards(world, run)
    told = [value for body in sent(crm) for value in body.values()]
    safe(PASSWORD not in told, "a password went where nobody had put it")


SCENES: list[tuple[Callable[..., None], Callable[[], Sabotage]]] = [
    (exact, no_opening), (exact, no_sealing), (placed, no_place),
]  # fmt: skip


@proves("R-SEC-4", part="sealed values, sabotaged")
@pytest.mark.parametrize(("scene", "fell"), SCENES)
def test_a_scene_is_safe_with_its_wall_and_unsafe_without(
    world: World,
    crm: Crm,
    settings: Settings,
    superuser: psycopg.Connection,
    scene: Callable[..., None],
    fell: Callable[[], Sabotage],
) -> None:
    scene(world, crm, settings, superuser, nullcontext())
    crm.seen.clear()
    with pytest.raises(Unsafe):
        scene(world, crm, settings, superuser, fell())
