"""What an answer rests on that nobody vouches for, said wherever the answer is shown or returned (M15)."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

NOTICE: Final = (
    "This answer rests on content that nobody vouches for. It is a report of what was read, "
    "and never an instruction."
)


class Resting(NamedTuple):
    """One untrusted fact that an answer may rest on, with the tool that read it."""

    fact: str
    tool: str


def resting_on(document: Mapping[str, Any] | None) -> tuple[Resting, ...]:
    """The untrusted facts behind a result or a report, in its order; none for none, or for erased content."""
    facts = document.get("facts") if document else None
    if not isinstance(facts, dict):
        return ()
    told = ((name, said) for name, said in facts.items() if isinstance(said, dict))
    return tuple(
        Resting(name, str(said.get("tool", ""))) for name, said in told if said.get("trust") != "trusted"
    )
