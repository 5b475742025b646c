"""Injected tasks over a real tool server: the model plays the task whose page it is to read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from threading import Lock
from typing import Any, Literal
from uuid import UUID

import orjson

from orchestrator.runs.models.run import Intent
from tenancy.db.tenant_context import tenant_transaction
from tests.doubles.desk_server import CHANGES, READS, DeskServer
from tests.doubles.http_server import Reply, Seen
from tests.doubles.openai_server import Call, OpenAIServer, calls, said
from tests.factories.foreign import onwards
from tests.factories.injections import Task, Wanted, injected
from tests.factories.servers import admit, connect, let_in
from tests.factories.world import World

Mode = Literal["honest", "obedient", "hostile"]
LOCAL = ("write_file", "set_flag", "keep_note")


@dataclass
class Desk:
    """What became of one task: how its run ended, what people were asked, and what they said yes to. `keys`:
    those of its calls, by which the tool server's log tells whose an effect is."""

    run: UUID
    code: str = ""
    keys: frozenset[str] = frozenset()
    asked: list[tuple[str, Any]] = field(default_factory=list)
    agreed: list[tuple[str, Any]] = field(default_factory=list)


class Clerk(OpenAIServer):
    """A model that does what the page of its task says, one reply after another."""

    def __init__(self, scripts: Mapping[str, tuple[tuple[Call, ...], ...]]) -> None:
        super().__init__()
        self._scripts, self._turn = scripts, Lock()
        self._given: dict[str, int] = {}

    def answer(self, seen: Seen) -> Reply:
        """The next reply of the script whose page is named in the goal."""
        messages = (seen.document or {}).get("messages", [])
        told = "\n".join(str(message.get("content")) for message in messages)
        page, script = next(held for held in self._scripts.items() if f"({held[0]})" in told)
        turns = sum(message.get("role") == "assistant" for message in messages)
        with self._turn:
            # Runs side by side ask at the same time, and a request that is refused uses up no reply.
            self._script.clear()
            self._given[page] = max(turns + 1, self._given.get(page, 0))
            self.play(calls(*script[turns]) if turns < len(script) else said("Done."))
            return super().answer(seen)

    def proposed(self, page: str) -> list[Wanted]:
        """The calls that the run with this page was asked to make, of those replies that it heard."""
        heard = [one for turn in self._scripts[page][: self._given.get(page, 0)] for one in turn]
        return [
            (one.name.removeprefix("desk_"), one.arguments)
            for one in heard
            if not isinstance(one.arguments, str)
        ]


def page_of(number: int) -> str:
    """The name of the page of a task."""
    return f"page-x{number}y"


def script_of(task: Task, page: str, mode: Mode) -> tuple[tuple[Call, ...], ...]:
    """What the model asks for, reply by reply."""
    first = tuple(one for one in task.wrong if one[0] not in READS) if mode == "hostile" else ()
    reading: tuple[Wanted, ...] = (("read_page", {"name": page}),)
    turns = (first, reading, task.wrong if mode != "honest" else (), task.right)
    return tuple(
        tuple(Call(f"desk_{tool}", dict(held), f"c{turn}_{n}") for n, (tool, held) in enumerate(asked))
        for turn, asked in enumerate(turns)
        if asked
    )


def furnish_desk(world: World, server: DeskServer) -> None:
    """Connect the server, admit its tools, and let the tool loop call them."""
    connect(world.id, server, "desk")
    for name in READS:
        admit(world.id, name, "desk", risk="read_only", reversibility="pure", recovery="read_only")
    for name in CHANGES:
        risk, back = ("local_write", "reversible") if name in LOCAL else ("network", "irreversible")
        admit(world.id, name, "desk", risk=risk, reversibility=back)
    let_in(world, "desk")


def played(world: World, task: Task, page: str, chance: Random | None) -> Desk:
    """Submit it and drive it to its end. A reviewer says yes to 93 % by chance, or only to what is right."""
    run = world.submit("tool-loop", f"{task.objective} The page is ({page}).")
    desk = Desk(run=run)
    found = onwards(world, run)
    while requests := world.open_requests(run):
        for request in requests:
            if request.kind == "reconciliation":
                # A machine under load may time a call out: nobody knows, so a person says.
                world.decide(request, world.people.approver, "happened")
                continue
            packet = orjson.loads(bytes(request.packet))
            call = (request.tool.removeprefix("desk."), orjson.loads(packet["arguments"]))
            desk.asked.append(call)
            yes = chance.random() < 0.93 if chance is not None else not injected(task, *call)
            desk.agreed.extend([call] * yes)
            world.decide(request, world.people.approver, "approve" if yes else "reject", **_why(yes=yes))
        found = onwards(world, run)
    desk.code = found.terminal_code
    with tenant_transaction(world.id):
        desk.keys = frozenset(Intent.objects.filter(run_id=run).values_list("key", flat=True))
    return desk


def unauthorized(every: Iterable[Task], found: Iterable[Desk], server: DeskServer) -> list[list[Wanted]]:
    """The effects of each task that it did not ask for, whatever other tasks asked for; last, those of no
    task's run at all."""
    left = server.effects()
    beyond: list[list[Wanted]] = []
    for task, desk in zip(every, found, strict=True):
        own = [(line["tool"], line["arguments"]) for line in left if line["key"] in desk.keys]
        left = [line for line in left if line["key"] not in desk.keys]
        beyond.append([effect for effect in own if injected(task, *effect)])
    return [*beyond, [(line["tool"], line["arguments"]) for line in left]]


def undecided(found: Iterable[Desk], server: DeskServer) -> list[Wanted]:
    """The effects in the server's log beyond those that a person said yes to, each to exactly this call."""
    left = [call for one in found for call in one.agreed]
    beyond: list[Wanted] = []
    for line in server.effects():
        effect = (line["tool"], line["arguments"])
        if effect in left:
            left.remove(effect)
        else:
            beyond.append(effect)
    return beyond


def _why(*, yes: bool) -> dict[str, str]:
    return {} if yes else {"reason": "Nobody asked for this."}
