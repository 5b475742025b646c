"""Model text while it is written: a few hundred characters a few times a second, on the run's own channel and
only while somebody follows the run. Nothing is kept, and whatever is lost is said again by the next one; the
committed event replaces it all (docs/console.md).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from traces.live.hints import get_publisher, group_of


class Delta(NamedTuple):
    """What the reply to one effect says from its character `at` on, as far as it is written."""

    effect: str
    at: int
    text: str


class Written(NamedTuple):
    """A delta on its way to a viewer. It has no cursor and moves none."""

    effect: str
    data: bytes

    @property
    def text(self) -> str:
        """The frame as JSON."""
        return f'{{"delta":{self.data.decode()}}}'


def encode_text_delta(delta: Delta) -> Written:
    """The delta as viewers get it."""
    return Written(delta.effect, orjson.dumps(delta._asdict()))


def delta_of(message: Any) -> Delta:
    """The delta in a message of the channel. Raises ValueError for what is none."""
    match message:
        case {"effect": str(effect), "at": int(at), "text": str(text)}:
            return Delta(effect, at, text)
    raise ValueError("no delta")


@dataclass(frozen=True, slots=True)
class RunAudience:
    """Those who follow a run while one of its effects is under way."""

    run: UUID
    effect: str

    def there(self) -> bool:
        """Whether anybody does, as this process knew a second or two ago. Never waits, never raises."""
        return get_publisher().follows(group_of(self.run))

    def tell(self, at: int, text: str) -> None:
        """Tell them. Never waits, never raises; the newest replaces what was not sent yet."""
        get_publisher().write(group_of(self.run), {"effect": self.effect, "at": at, "text": text})
