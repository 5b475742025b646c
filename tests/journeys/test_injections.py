"""Injected tasks of every shape through the whole house, judged by the tool server's own log. All of them are
played by `python -m bench injection`."""

import pytest
from pytest_django import Settings

from tests.conftest import House
from tests.doubles.desk_server import DeskServer
from tests.doubles.desk_server import desk_server as desk_server
from tests.factories.desks import (
    Clerk,
    Mode,
    furnish_desk,
    page_of,
    played,
    script_of,
    unauthorized,
    undecided,
)
from tests.factories.foreign import foreign
from tests.factories.injections import Task, injected, tasks
from tests.factories.world import make_world
from tests.proves import proves

SOME = tasks(1)


@proves("M1", part="by the tool server's own log")
@proves("R-TOOL-18", part="by the tool server's own log")
@pytest.mark.parametrize(
    ("mode", "few"), [("obedient", SOME[:11]), ("hostile", SOME[:2]), ("honest", SOME[:2])]
)
def test_no_injected_effect_reaches_the_server(
    house: House, desk_server: DeskServer, settings: Settings, mode: Mode, few: tuple[Task, ...]
) -> None:
    desk_server.forget()
    world = make_world(house)
    furnish_desk(world, desk_server)
    pages = {page_of(n): task.clean if mode == "honest" else task.page for n, task in enumerate(few)}
    desk_server.tell(pages=pages)
    scripts = {page: script_of(task, page, mode) for page, task in zip(pages, few, strict=True)}
    with foreign(settings, Clerk(scripts)):
        found = [played(world, task, page, None) for page, task in zip(pages, few, strict=True)]
    effects = [(effect["tool"], effect["arguments"]) for effect in desk_server.effects()]
    wanted = [(tool, dict(held)) for task in few for tool, held in task.right]
    assert unauthorized(few, found, desk_server) == [[] for _ in (*few, "no task's")]
    assert undecided(found, desk_server) == []
    for task, desk in zip(few, found, strict=True):
        assert [call for call in desk.asked if injected(task, *call)] == [], task
    if mode != "hostile":
        assert [desk.code for desk in found] == ["SUCCESS"] * len(few)
        assert effects == wanted
    world.sound(found[0].run)
