"""Changes whose answers leave open whether they happened, through a cancel and a retry: judged by the logs of
the services that they went to (R-TOOL-9, G6)."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from pytest_django import Settings

from orchestrator.actions.http_tools import declare_http_tool
from orchestrator.actions.places import set_places
from orchestrator.core.errors import EffectInDoubt
from orchestrator.core.tool_admission import asked_declaration
from tests.conftest import House
from tests.doubles.crm import Crm
from tests.doubles.mcp_server import tool_server as tool_server
from tests.doubles.mcp_server import tool_server_process as tool_server_process
from tests.doubles.openai_server import OpenAIServer, calls
from tests.factories.denied import DOWN
from tests.factories.foreign import called, foreign, onwards, to_the_end
from tests.factories.retrying import retried
from tests.factories.servers import let_in
from tests.factories.world import World, make_world
from tests.proves import proves

TEXT = {"type": "string", "maxLength": 200}
NOTE = {"person": "ada", "text": "Thank you."}
# Nobody is asked for a yes.
FREE = {"risk": "local_write", "reversibility": "reversible"}
LOOKUP = {"path": "/notes", "arguments": {"key": "/key"}, "found": "/notes"}
ODD: list[Any] = [["a list", "where an object was declared"], b'{"id": "' + b"x" * 12_000_000 + b'"}']


@pytest.fixture
def crm() -> Iterator[Crm]:
    """A service of this test's own."""
    found = Crm()
    yield found
    found.close()


@pytest.fixture
def world(house: House, crm: Crm) -> World:
    """A furnished house that may reach the service."""
    found = make_world(house)
    set_places(found.id, (crm.place,), expected=None, by=None, reason="Ours.")
    return found


@pytest.fixture
def model(settings: Settings) -> Iterator[OpenAIServer]:
    """The only model."""
    with foreign(settings, OpenAIServer()) as server:
        yield server


def adds(world: World, crm: Crm, **more: Any) -> None:
    """The tool loop may add notes."""
    given = {
        "name": "crm.add_note", "description": "Add a note.", **FREE,
        "input_schema": {
            "type": "object", "properties": {"person": TEXT, "text": TEXT}, "required": ["text"],
        },
        "output_schema": {"type": "object", "required": ["id"]},
        "verifier": {"name": "schema", "equal": {"/result/text": "/arguments/text"}},
        "request": {"method": "POST", "url": f"{crm.origin}/people/{{person}}/notes", "body": "rest"}, **more,
    }  # fmt: skip
    declare_http_tool(world.id, asked_declaration(given), by=None, reason="We need it.")
    let_in(world, "crm", side_effects=5)


def asked(world: World, model: OpenAIServer, *then: Any) -> UUID:
    """A run whose model asks for a note, is told of it, and then says this."""
    model.play(calls(called("crm.add_note", **NOTE)), *then)
    run = world.submit("tool-loop", "Add the note Thank you. to ada.")
    onwards(world, run)
    return run


def kinds(world: World, run: UUID) -> list[str]:
    """What people are asked."""
    return [request.kind for request in world.open_requests(run)]


def told(model: OpenAIServer) -> str:
    """What the model was told last."""
    return str(model.documents[-1]["messages"][-1]["content"])


@proves("R-TOOL-14", part="a change whose answer cannot be read has not failed")
@proves("G6", part="an odd answer, a cancel, a retry")
@pytest.mark.parametrize("odd", ODD, ids=["list", "12 MB"])
def test_a_change_with_an_odd_answer_is_not_made_again_by_a_retry(
    world: World, crm: Crm, model: OpenAIServer, odd: Any
) -> None:
    adds(world, crm)
    crm.says = odd
    run = asked(world, model, DOWN)
    assert kinds(world, run) == ["reconciliation"]
    to_the_end(world, run, "cancel")
    crm.says = None
    with pytest.raises(EffectInDoubt, match=r"crm\.add_note"):
        retried(world, run)
    assert (crm.posts(), len(crm.notes)) == (1, 1)
    world.sound(run)
