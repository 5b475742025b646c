"""A run whose every content is hostile: what its model says and asks for, what a real tool answers and fails
with, and the facts that come of it, all committed through the ring.
"""

from __future__ import annotations

import json
from typing import Any, Final
from uuid import UUID

from tests.doubles.desk_server import DeskServer
from tests.doubles.http_server import Reply, Seen
from tests.doubles.openai_server import Call, OpenAIServer, calls, said
from tests.factories.desks import furnish_desk
from tests.factories.foreign import onwards
from tests.factories.hostile import hostile
from tests.factories.world import World

# By which mark a page is searched for what came from where.
ANSWER, FACT, DOCUMENT, KEY, FAULT = "C-answer", "C-fact", "C-document", "C-key", "C-fault"
MODEL, REPLY, ARGUMENT, NOBODY, ENDING = "C-model", "C-reply", "C-argument", "C-nobody", "C-ending"
CAME: Final = (ANSWER, FACT, DOCUMENT, KEY, FAULT, MODEL, REPLY, ARGUMENT, NOBODY, ENDING)
# What is this short stands in a fact as it is; of what is longer the fact keeps the digest alone.
SHORT: Final = 180
# Which turn follows the one that called this; the first that fits counts.
FOLLOWS: Final = (("desk_keep_note", 3), ("desk_fetch", 2), ("desk_find_person", 1))
PAGES: Final = {
    "long": hostile(ANSWER),
    "short": hostile(FACT, SHORT),
    "typed": json.dumps({hostile(KEY, SHORT): [hostile(DOCUMENT, SHORT), {"flat": hostile(DOCUMENT)}]}),
}


class Hostile(OpenAIServer):
    """A model whose every word is hostile: it reads, asks for what fails and what is not there, wants to keep
    a note, and ends."""

    def __init__(self) -> None:
        super().__init__()
        few = hostile(ARGUMENT, SHORT)
        self._turns = (
            calls(
                Call("desk_read_page", {"name": "short"}, "a1"),
                Call("desk_read_page", {"name": "typed"}, "a2"),
                Call("desk_find_person", {"name": few}, "a3"),
                text=hostile(REPLY, 800),
            ),
            calls(
                Call("desk_fetch", {"url": few}, "b1"),
                Call(hostile(NOBODY, 300), {few: few}, "b2"),
                Call("desk_read_page", few, "b3"),
                Call("desk_read_page", {"name": "long"}, "b4"),
            ),
            calls(Call("desk_keep_note", {"text": hostile(ARGUMENT)}, "c1")),
            said(hostile(ENDING)),
        )

    def answer(self, seen: Seen) -> Reply:
        """The turn after the last one in the conversation that is sent. It is told by what it asked for:
        earlier turns are left out of a conversation that grows too long."""
        messages = (seen.document or {}).get("messages", [])
        replies: list[dict[str, Any]] = [one for one in messages if one.get("role") == "assistant"]
        said_last = replies[-1] if replies else {}
        names = [call["function"]["name"] for call in said_last.get("tool_calls") or ()]
        turn = next((after for name, after in FOLLOWS if name in names), 0)
        self.play(self._turns[turn].altered(model=hostile(MODEL, SHORT)))
        return super().answer(seen)


def begin(world: World, server: DeskServer) -> UUID:
    """The run, driven to where it asks whether it may keep its note. `Hostile` is its model."""
    server.forget()
    furnish_desk(world, server)
    server.tell(pages=PAGES, fails={"find_person": hostile(FAULT, 800)})
    run = world.submit("tool-loop", "Read the pages and keep a note.")
    onwards(world, run)
    assert len(world.open_requests(run)) == 1, world.run(run).reason
    return run
