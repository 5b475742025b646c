"""Model text while it is written: a few hundred characters at a time, on the run's channel.

Deltas are sent a few times a second, only while someone follows the run, and they are not stored. A lost
delta is repeated by the next one; the committed event replaces them all (docs/components.md).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from traces.live.hints import get_publisher, group_of


class Delta(NamedTuple):
    """The text of the reply to one effect from character `at` on, as far as it is written."""

    effect: str
    at: int
    text: str


class AddressedDelta(NamedTuple):
    """A delta on its way to a viewer. It has no cursor and does not advance the viewer's cursor."""

    effect: str
    data: bytes

    @property
    def text(self) -> str:
        """The frame as JSON."""
        return f'{{"delta":{self.data.decode()}}}'


def encode_text_delta(delta: Delta) -> AddressedDelta:
    """Encode the delta in the form sent to viewers."""
    return AddressedDelta(delta.effect, orjson.dumps(delta._asdict()))


def delta_of(message: Any) -> Delta:
    """Parse a delta from a channel message.

    Raises: ValueError for a message that is not a delta.
    """
    match message:
        case {"effect": str(effect), "at": int(at), "text": str(text)}:
            return Delta(effect, at, text)
    raise ValueError("no delta")


@dataclass(frozen=True, slots=True)
class RunAudience:
    """The viewers who follow a run while one of its effects is in flight."""

    run: UUID
    effect: str

    def there(self) -> bool:
        """Return whether anyone follows the run, as known to this process a second or two ago.

        Never blocks, never raises.
        """
        return get_publisher().follows(group_of(self.run))

    def tell(self, at: int, text: str) -> None:
        """Send the text to the viewers. Never blocks, never raises; newer text replaces text not sent yet."""
        get_publisher().write(group_of(self.run), {"effect": self.effect, "at": at, "text": text})
