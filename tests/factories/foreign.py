"""A model of a test's own on loopback, and runs of the tool loop that it drives."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from threading import Event
from time import monotonic, sleep
from typing import Any
from uuid import UUID

from pytest_django import Settings

from orchestrator.core.common.run_status import TERMINAL_STATUSES, Status
from orchestrator.runs.models.run import Run
from tests.doubles.http_server import Reply, Seen
from tests.doubles.openai_server import Call, OpenAIServer, calls, said
from tests.doubles.streams import DONE, openai_parts, stream
from tests.factories.world import World

# Seconds; backoffs are drawn by chance, and how often one can look meanwhile is the machine's.
PATIENCE = 60
A_MOMENT = 0.05
# A reply that asks for a change, which waits for people, and for two look-ups.
REFUND_AND_LOOK_UPS = (
    Call(
        "payments_refund",
        {"order_id": "A-1001", "amount": "10.00", "currency": "EUR", "reason": "broken"},
        "a1",
    ),
    Call("orders_lookup", {"order_id": "A-1001"}, "a2"),
    Call("orders_lookup", {"order_id": "A-1003"}, "a3"),
)


class Obedient(OpenAIServer):
    """A model that asks for exactly these calls, as often as it takes, and answers once it has results."""

    def __init__(self, *asked: Call, answer: str = "Done.") -> None:
        super().__init__()
        self._asked, self._answer = asked, answer

    def answer(self, seen: Seen) -> Reply:
        """The calls to a conversation without results, the answer to one with them."""
        messages = (seen.document or {}).get("messages", [])
        told = any(message.get("role") == "tool" for message in messages)
        self.play(said(self._answer) if told else calls(*self._asked))
        return super().answer(seen)


class Talking(OpenAIServer):
    """A model that says the same to everybody as a stream, and waits in the middle of it for a test."""

    streams = True

    def __init__(self, first: str, rest: str) -> None:
        super().__init__()
        self.go = Event()
        parts = openai_parts(said(first + rest), size=len(first))
        self._said = stream(*parts[:2], self.go, *parts[2:], DONE)

    def answer(self, seen: Seen) -> Reply:
        """The same."""
        self.play(self._said)
        return super().answer(seen)


@contextmanager
def foreign(settings: Settings, server: OpenAIServer) -> Iterator[OpenAIServer]:
    """New runs are pinned to this server as their only model; nothing in it is known to us, and the worst
    case that is charged where no price is known is next to nothing."""
    with server:
        settings.OPENAI_BASE_URL = server.url
        settings.OPENAI_API_KEY = settings.ANTHROPIC_API_KEY = settings.INTERLOCK_MODEL = None
        settings.INTERLOCK_UNKNOWN_PRICE = "worst"
        settings.INTERLOCK_MODEL_STREAMS = server.streams
        settings.INTERLOCK_WORST_CASE_USD_PER_MTOK = Decimal("0.001")
        yield server


def onwards(world: World, run: UUID) -> Run:
    """Drive until the run has ended or asks people something; short waits of its own are waited out."""
    found, until = world.drive(run), monotonic() + PATIENCE
    while monotonic() < until:
        if Status(found.status) in TERMINAL_STATUSES or world.open_requests(run):
            break
        sleep(A_MOMENT)
        found = world.drive(run)
    return found


def to_the_end(world: World, run: UUID, verdict: str = "happened") -> Run:
    """Drive, agree to every action that is asked for, and say `verdict` where nobody knows what happened."""
    found = onwards(world, run)
    while requests := world.open_requests(run):
        for request in requests:
            kind = verdict if request.kind == "reconciliation" else "approve"
            world.decide(request, world.people.approver, kind)
        found = onwards(world, run)
    return found


def called(name: str, **arguments: Any) -> Call:
    """A call of one of our tools under its name on the wire."""
    return Call(name.replace(".", "_"), arguments)
