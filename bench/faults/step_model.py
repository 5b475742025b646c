"""The runs to be, and a model that asks for one step of its run after another until each has its result."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from time import monotonic
from typing import Any, Final

from bench.faults.effect_count import tag_of
from tests.doubles.http_server import Reply, Seen
from tests.doubles.openai_server import Call, OpenAIServer, calls, said

MAILBOX: Final = "crew@demo.example"
ORDER: Final = "A-1001"
KINDS: Final[tuple[Callable[[str], Call], ...]] = (
    lambda tag: Call("company_ticket", {"order_id": ORDER, "subject": tag, "text": "Please look."}),
    lambda tag: Call("service_book", {"step": tag}),
    lambda tag: Call(
        "company_message", {"to": MAILBOX, "subject": tag, "text": "It is done.", "reference": tag}
    ),
    lambda tag: Call("service_note", {"step": tag}),
    lambda tag: Call("company_entry", {"account": "repairs", "amount": "1.00", "memo": tag}),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run to be: its number and its steps, each with the call that does it."""

    number: int
    steps: Mapping[str, Call]

    @classmethod
    def of(cls, number: int, effects: int, chance: Random, kinds: tuple[int, ...] = ()) -> "Job":
        """Draw the order of the tools; each is used before one is used again. `kinds` fixes them."""
        drawn = list(kinds) or chance.sample(range(len(KINDS)), len(KINDS))
        tags = [f"x{number:04}-s{step}" for step in range(1, effects + 1)]
        return cls(
            number=number, steps={tag: KINDS[drawn[n % len(drawn)]](tag) for n, tag in enumerate(tags)}
        )

    @property
    def objective(self) -> str:
        """The goal's text: it holds every value that the steps are called with."""
        return (
            f"Do these steps for order {ORDER}, account repairs, amount 1.00, and tell {MAILBOX}:"
            f" {', '.join(self.steps)}. Say Please look. and It is done."
        )


class StepModel(OpenAIServer):
    """A model that asks for the first step without a result, and answers when there is none left."""

    def __init__(self, jobs: Mapping[str, Job]) -> None:
        super().__init__()
        self._jobs = jobs
        self.first_asked: dict[str, float] = {}

    def answer(self, seen: Seen) -> Reply:
        """Play the reply that follows from the conversation."""
        messages = (seen.document or {}).get("messages", [])
        tag = tag_of("\n".join(str(message.get("content")) for message in messages))
        self.first_asked.setdefault(tag.partition("-")[0], monotonic())
        steps = self._jobs[tag.partition("-")[0]].steps
        asked = sum(message.get("role") == "assistant" for message in messages)
        left = next((step for step in steps if not _is_done(messages, step)), None)
        if left is None:
            reply = said("Done.")
        else:
            call = steps[left]
            reply = calls(Call(call.name, call.arguments, f"{left}-{asked}"))
        with self._lock:
            self._script.clear()
            self._script.append(reply)
            self.seen.clear()
        return super().answer(seen)


def _is_done(messages: list[dict[str, Any]], step: str) -> bool:
    """True if a call for the step has a result that is no error."""
    results = [
        str(message.get("content"))
        for message in messages
        if message.get("role") == "tool" and str(message.get("tool_call_id", "")).startswith(f"{step}-")
    ]
    return any(not _is_error(result) for result in results)


def _is_error(result: str) -> bool:
    try:
        document = json.loads(result)
    except ValueError:
        return False
    return isinstance(document, dict) and "error" in document
