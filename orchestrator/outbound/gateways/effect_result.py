"""Results of gateways: an event without its time, and the content it names. Gateways never raise."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from orchestrator.core.domain.run_events import ModelFailed, ModelReplied, ToolAnswered, ToolFailed
from orchestrator.core.domain.run_state import UnreadAnswer
from orchestrator.tools.gateways.echoes import replace_opened_values
from traces.core.canonical import canonical_outside, payload_digest
from traces.core.redaction import redact_secrets

NOTHING_OPENED: Mapping[str, str] = {}
Outcome = ModelReplied | ModelFailed | ToolAnswered | ToolFailed
KEPT_DETAIL = 20_000


def do_nothing() -> None:
    """Do nothing: the default of `before_wait`."""


BeforeWait = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectResult:
    """The outcome of one effect.

    `fields` are the event's fields except its time; `bodies` hold the content that its digests name. `unread`
    is an answer that could not be read, stored as it came.
    """

    kind: type[Outcome]
    fields: Mapping[str, Any]
    bodies: Mapping[str, bytes] = field(default_factory=dict)
    unread: UnreadAnswer | None = None

    def event(self, at: datetime) -> Outcome:
        """Return the event, with the commit's time."""
        return self.kind(at=at, **self.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUpResult:
    """The result of a look-up.

    `answered` False: the outcome is unknown, and `why` is a short code. `observation` None with `answered`:
    the object does not exist.
    """

    answered: bool
    why: str = ""
    observation: str | None = None
    size: int = 0
    bodies: Mapping[str, bytes] = field(default_factory=dict)


class ContentSink:
    """Collects content under the run's salted digests, redacted before it is hashed (R-TRACE-5).

    `redacted` are the kinds of removed secrets. `opened` are the values that were opened for the call, with
    their references: an answer that repeats a value is stored with the reference.
    """

    def __init__(self, salt: bytes, opened: Mapping[str, str] = NOTHING_OPENED) -> None:
        self._salt = salt
        self.opened = opened
        self.bodies: dict[str, bytes] = {}
        self.redacted: set[str] = set()

    def keep(self, body: bytes) -> str:
        """Store `body` after redaction, and return its digest (hex)."""
        cleaned, taken = redact_secrets(replace_opened_values(body, self.opened))
        self.redacted.update(one.kind for one in taken)
        digest = payload_digest(self._salt, cleaned)
        self.bodies[digest] = cleaned
        return digest

    def keep_json(self, value: Any) -> str:
        """Store the canonical bytes of a JSON value, and return their digest."""
        return self.keep(canonical_outside(value))

    def keep_text(self, text: str, limit: int = KEPT_DETAIL) -> str | None:
        """Store an explanatory text and return its digest, or None if the text is empty."""
        return self.keep(text[:limit].encode("utf-8", "backslashreplace")) if text else None


def make_completed_future(performed: EffectResult) -> "Future[EffectResult]":
    """Return a completed future, for an effect that needs no waiting."""
    future: Future[EffectResult] = Future()
    future.set_result(performed)
    return future
