"""A service that answers a change oddly: at the first call, after a yes, at a retry, and when something is
taken back. Judged by the service's own log: nothing is made twice, and nothing that may have been made is
called failed (R-TOOL-9, R-TOOL-14, G6)."""

from collections.abc import Callable
from time import sleep
from typing import Any

import orjson
import pytest

from orchestrator.core.common.errors import OrchestratorError
from orchestrator.core.tools.registration import asked_declaration
from orchestrator.tools.actions.http_tools import declare_http_tool
from tests.doubles.crm import Crm
from tests.doubles.openai_server import OpenAIServer, calls
from tests.factories.denied import DOWN
from tests.factories.foreign import called, onwards, to_the_end
from tests.factories.retrying import retried
from tests.factories.servers import CHANGES
from tests.factories.world import World
from tests.journeys.odd import (
    Service,
    is_in_doubt,
    made_once_after_a_yes,
    made_once_at_the_first_call,
    settled_once,
)
from tests.journeys.test_open_effects import NOTE, TEXT, adds, asked, kinds, told
from tests.journeys.test_open_effects import crm as crm
from tests.journeys.test_open_effects import model as model
from tests.journeys.test_open_effects import world as world
from tests.proves import proves

Write = Callable[[bytes], object]
ASK = calls(called("crm.add_note", **NOTE))
HURRY = {"timeout_ms": 1_500}


def plain(body: bytes, *, status: bytes = b"200 OK", length: int | None = None, **headers: str) -> Any:
    """Speaks one answer, byte for byte."""

    def speak(write: Write) -> None:
        size = len(body) if length is None else length
        lines = [b"HTTP/1.1 " + status, b"content-type: application/json", b"content-length: %d" % size]
        lines += [f"{name.replace('_', '-')}: {value}".encode() for name, value in headers.items()]
        write(b"\r\n".join([*lines, b"connection: close", b"", b""]) + body)

    return speak


def trickle(write: Write) -> None:
    """An answer that never comes to its end."""
    write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9000\r\n\r\n")
    for _ in range(40):
        write(b" ")
        sleep(0.1)


def interim(write: Write) -> None:
    """Nothing but that more is to come."""
    write(b"HTTP/1.1 102 Processing\r\n\r\n" * 3)


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
ODD: dict[str, Any] = {
    "list": plain(b"[1]"), "number": plain(b"17"), "null": plain(b"null"), "empty": plain(b""),
    "text": plain(b"<html>"), "half json": plain(b'{"id": "n'), "12 MB": plain(b" " * 12_000_000 + b"{}"),
    "trickle": trickle, "cut": plain(b'{"id": "n0"}', length=900),
    "longer": plain(b'{"id": "n0"}', length=3),
    "chunk": lambda write: write(CHUNKED + b'5\r\n{"id'),
    "bad chunk": lambda write: write(CHUNKED + b"zz\r\n"),
    "204": plain(b"", status=b"204 No Content"), "205": plain(b"", status=b"205 Reset Content"),
    "302": plain(b"", status=b"302 Found", location="/elsewhere"),
    "307": plain(b"", status=b"307 Temporary Redirect", location="/people/ada/notes"),
    "308": plain(b"", status=b"308 Permanent Redirect", location="http://127.0.0.1:1/"),
    "1xx": interim, "noise": lambda write: write(b"\x16\x03\x01 no http at all\r\n\r\n"),
    "no such status": plain(b"{}", status=b"799 Odd"),
    "gzip": plain(b"no gzip", content_encoding="gzip"),
    "200 error": plain(b'{"error": "It failed."}'), "409": plain(b"{}", status=b"409 Conflict"),
    "nan": plain(b'{"id": NaN}'), "deep": plain(b"[" * 100_000),
    "utf-16": plain('{"id": "n"}'.encode("utf-16")),
    "member twice": plain(b'{"id": "n0", "id": "n1"}'),
}  # fmt: skip
# At the first call each of them; elsewhere these, and the others where there is more time.
TELLING = ("list", "member twice", "trickle", "cut", "302", "1xx")
odd = pytest.mark.parametrize("speaks", ODD.values(), ids=ODD)
telling = pytest.mark.parametrize(
    "speaks",
    [
        pytest.param(speaks, id=name, marks=() if name in TELLING else pytest.mark.slow)
        for name, speaks in ODD.items()
    ],
)


def service(world: World, crm: Crm, model: OpenAIServer) -> Service:
    """The service with notes, as it is judged."""

    def calm() -> None:
        crm.speaks = None

    return Service(
        world=world,
        model=model,
        tool="crm.add_note",
        goal="Add the note Thank you. to ada.",
        ask=ASK,
        made=crm.posts,
        calm=calm,
    )


@proves("G6", part="odd answers, at the first call")
@odd
def test_a_change_that_is_answered_oddly_is_made_once(
    world: World, crm: Crm, model: OpenAIServer, speaks: Any
) -> None:
    adds(world, crm, **HURRY)
    crm.speaks, crm.times = speaks, 1_000
    made_once_at_the_first_call(service(world, crm, model))
    assert len(crm.notes) == 1


@proves("G6", part="odd answers, after a yes")
@telling
def test_a_change_that_people_agreed_to_and_is_answered_oddly_is_made_once(
    world: World, crm: Crm, model: OpenAIServer, speaks: Any
) -> None:
    adds(world, crm, **CHANGES, **HURRY)
    crm.speaks = speaks
    made_once_after_a_yes(service(world, crm, model))
    assert len(crm.notes) == 1


@proves("G6", part="odd answers, at a retry")
@telling
def test_a_change_that_is_answered_oddly_at_a_retry_is_made_once(
    world: World, crm: Crm, model: OpenAIServer, speaks: Any
) -> None:
    adds(world, crm, **HURRY)
    crm.status, crm.makes = 500, False
    first = asked(world, model, DOWN)
    crm.status, crm.makes, crm.speaks = 201, True, speaks
    model.play(ASK, ASK, DOWN)
    again = retried(world, first)
    onwards(world, again)
    # Nobody has said what became of the first one yet.
    assert (kinds(world, again), crm.posts()) == (["reconciliation"], 1)
    world.decide(world.open_requests(again)[0], world.people.approver, "not_happened")
    onwards(world, again)
    assert (crm.posts(), len(crm.notes)) == (2, 1)
    assert is_in_doubt(world, again)
    settled_once(service(world, crm, model), again)


def drops_notes(world: World, crm: Crm, **more: Any) -> dict[str, Any]:
    """The way back of a note: a tool that drops it."""
    drop = {
        "name": "crm.drop_note", "description": "Drop a note.", "risk": "local_write",
        "reversibility": "reversible", "output_schema": {"type": "object", "required": ["id"]},
        "input_schema": {"type": "object", "properties": {"text": TEXT}, "required": ["text"]},
        "request": {"method": "POST", "url": f"{crm.origin}/drops", "body": "rest"}, **more,
    }  # fmt: skip
    declare_http_tool(world.id, asked_declaration(drop), by=None, reason="We need it.")
    return {"tool": "crm.drop_note", "arguments": {"text": "/arguments/text"}, "wanted": "No note {text}."}


@proves("R-TOOL-15", part="odd answers of an undo")
@telling
def test_an_undo_that_is_answered_oddly_is_made_once_and_left_to_people(
    world: World, crm: Crm, model: OpenAIServer, speaks: Any
) -> None:
    adds(world, crm, **HURRY, compensation=drops_notes(world, crm, **HURRY))
    model.play(calls(called("crm.add_note", **NOTE)), DOWN)
    crm.speaks, crm.times = speaks, 1_000
    crm.first_plain = 1
    run = world.submit("tool-loop", "Add the note Thank you. to ada.")
    found = to_the_end(world, run)
    assert [one["path"] for one in crm.seen] == ["/people/ada/notes", "/drops"], found.reason
    (left,) = world.said(run, "deed_left")
    assert left["why"] == "undo_in_doubt"
    with pytest.raises(OrchestratorError):
        retried(world, run)
    assert crm.posts() == 2
    world.sound(run)


def test_the_odd_answers_are_what_the_model_is_told(world: World, crm: Crm, model: OpenAIServer) -> None:
    adds(world, crm, **HURRY)
    crm.speaks = ODD["302"]
    asked(world, model, DOWN)
    assert orjson.loads(told(model))["effect"] == "open"
