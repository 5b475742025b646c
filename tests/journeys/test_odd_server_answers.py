"""A tool server that makes a change and answers it oddly, judged by its own log: nothing is made twice, and
nothing that may have been made is called failed (R-TOOL-9, R-TOOL-14, G6)."""

from typing import Any

import orjson
import pytest

from tests.conftest import House
from tests.doubles.mcp_server import ToolServer
from tests.doubles.mcp_server import tool_server as tool_server
from tests.doubles.mcp_server import tool_server_process as tool_server_process
from tests.doubles.openai_server import OpenAIServer, calls
from tests.factories.foreign import called
from tests.factories.servers import CHANGES, admit, connect, let_in
from tests.factories.world import make_world
from tests.journeys.odd import Service, made_once_after_a_yes, made_once_at_the_first_call
from tests.journeys.test_open_effects import FREE
from tests.journeys.test_open_effects import model as model
from tests.proves import proves

SSE = "text/event-stream"
NOTE = {"id": "n1", "to": "ada@example.org", "text": "Thank you."}
SAID = [{"type": "text", "text": "Done."}]


def result(document: Any, **more: Any) -> dict[str, Any]:
    """An answer of the protocol with this result."""
    return {"body": wrapped(result=document), **more}


def wrapped(**document: Any) -> str:
    """A message of the protocol, to the request."""
    body = orjson.dumps({"jsonrpc": "2.0", "id": "ID", **document}).decode()
    return body.replace('"ID"', "$id")


def event(body: str, end: str = "\n\n") -> dict[str, Any]:
    """One event of a stream, which then ends."""
    return {"type": SSE, "body": f"event: message\ndata: {body}{end}"}


WELL = {"content": SAID, "structuredContent": NOTE}
NOTICE = orjson.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}).decode()
ODD: dict[str, dict[str, Any]] = {
    # What is no result of the tool.
    "list": result({"content": SAID, "structuredContent": [NOTE]}),
    "another form": result({"content": SAID, "structuredContent": {"note": "n1"}}),
    "number": result({"content": SAID, "structuredContent": 17}),
    "not structured": result({"content": SAID}), "no content": result({}), "null": result(None),
    "content of nothing": result({"content": [None], "structuredContent": NOTE}),
    "content as text": result({"content": "Done.", "structuredContent": NOTE}),
    "text result": result("Done."), "list result": result([WELL]),
    # What says that it failed, in odd ways.
    "error": result({"content": SAID, "isError": True}),
    "error without words": result({"content": [], "isError": True}),
    "error with a result": result({**WELL, "isError": True}),
    "error as text": result({**WELL, "isError": "yes"}),
    "error of 12 MB": result(
        {"content": [{"type": "text", "text": "$more"}], "isError": True}, more="x" * 1000, repeat=12_000),
    "error of null": result({"content": None, "isError": True}),
    "protocol error": {"body": wrapped(error={"code": -32000, "message": "No."})},
    "method not found": {"body": wrapped(error={"code": -32601, "message": "No."})},
    "wrong arguments": {"body": wrapped(error={"code": -32602, "message": "No."})},
    "error without a code": {"body": wrapped(error={"message": "No."})},
    "error and result": {"body": wrapped(error={"code": -32000, "message": "No."}, result=WELL)},
    "neither": {"body": wrapped()},
    # What is too large, cut, or not of the protocol.
    "300 kB": result({"content": [], "structuredContent": {"id": "$more"}}, more="x" * 1000, repeat=300),
    "12 MB": result({"content": [], "structuredContent": {"id": "$more"}}, more="x" * 1000, repeat=12_000),
    "cut": result(WELL, length=9_000), "half json": {"body": wrapped(result=WELL)[:60]},
    "text": {"body": "<html>", "type": "text/html"}, "empty": {"body": ""},
    "result as text": result(WELL, type="text/plain"), "no kind": result(WELL, type=""),
    "batch": {"body": f"[{wrapped(result=WELL)}]"},
    "nan": {"body": wrapped(result=WELL).replace('"n1"', "NaN")},
    "deep": {"body": "[" * 100_000}, "another id": {"body": wrapped(result=WELL).replace("$id", "4711")},
    "202": {"body": "", "status": 202}, "204": {"body": "", "status": 204},
    "302": {"body": "", "status": 302, "headers": {"location": "/elsewhere"}},
    "307": {"body": "", "status": 307, "headers": {"location": "/mcp"}},
    "409": {"body": "{}", "status": 409}, "500": {"body": "{}", "status": 500},
    "500 with a result": result(WELL, status=500), "gzip": result(WELL, headers={"content-encoding": "gzip"}),
    # Streams.
    "stream of nothing": {"type": SSE, "body": ""},
    "stream of comments": {"type": SSE, "body": ": hello\n\n" * 9},
    "stream of notices": event(NOTICE), "stream cut in an event": event(wrapped(result=WELL)[:60], end=""),
    "stream without an end": event(wrapped(result=WELL), end=""),
    "stream that is cut": {**event(NOTICE), "length": 90_000},
    "stream with an id": {"type": SSE, "body": f"id: 7\nevent: message\ndata: {NOTICE}\n\n"},
    "stream of no json": event("<html>"),
    "stream of another id": event('{"jsonrpc":"2.0","id":4711,"result":{}}'),
    "stream of 12 MB": {**event(wrapped(result={"content": [], "structuredContent": {"id": "$more"}})),
                        "more": "x" * 1000, "repeat": 12_000},
    "stream of another event": {"type": SSE, "body": f"event: other\ndata: {wrapped(result={})}\n\n"},
}  # fmt: skip
TELLING = ("list", "error", "cut", "stream cut in an event")
odd = pytest.mark.parametrize(
    "answer",
    [
        pytest.param(answer, id=name, marks=() if name in TELLING else pytest.mark.slow)
        for name, answer in ODD.items()
    ],
)


def service(house: House, server: ToolServer, model: OpenAIServer, **admission: Any) -> Service:
    """The server, connected, its change admitted so."""
    world = make_world(house)
    connect(world.id, server)
    admit(world.id, "send_note", **admission, timeout_ms=2_000)
    let_in(world, "shop", side_effects=5)
    ask = calls(called("shop.send_note", to="ada@example.org", text="Thank you."))
    return Service(
        world=world, model=model, tool="shop.send_note", goal="Send ada@example.org the note Thank you.",
        ask=ask, made=lambda: len(server.effects()),
        calm=server.tell,
    )  # fmt: skip


@proves("G6", part="odd answers of a tool server, at the first call")
@odd
def test_a_change_that_a_server_answers_oddly_is_made_once(
    house: House, tool_server: ToolServer, model: OpenAIServer, answer: dict[str, Any]
) -> None:
    asked = service(house, tool_server, model, **FREE)
    tool_server.tell(odd=answer)
    made_once_at_the_first_call(asked)


@proves("G6", part="odd answers of a tool server, after a yes")
@pytest.mark.parametrize("name", TELLING)
def test_a_change_that_people_agreed_to_and_a_server_answers_oddly_is_made_once(
    house: House, tool_server: ToolServer, model: OpenAIServer, name: str
) -> None:
    asked = service(house, tool_server, model, **CHANGES)
    tool_server.tell(odd=ODD[name])
    made_once_after_a_yes(asked)
