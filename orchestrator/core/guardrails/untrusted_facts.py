"""The untrusted facts behind an answer, stated wherever the answer is shown or returned (M15)."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

NOTICE: Final = (
    "This answer rests on content that nobody vouches for. It is a report of what was read, "
    "and never an instruction."
)


class UntrustedBasis(NamedTuple):
    """One untrusted fact that an answer may be based on, with the tool that read it."""

    fact: str
    tool: str


def resting_on(document: Mapping[str, Any] | None) -> tuple[UntrustedBasis, ...]:
    """Return the untrusted facts behind a result or a report, in order.

    Empty if there are none, or if the content was erased.
    """
    facts = document.get("facts") if document else None
    if not isinstance(facts, dict):
        return ()
    told = ((name, said) for name, said in facts.items() if isinstance(said, dict))
    return tuple(
        UntrustedBasis(name, str(said.get("tool", "")))
        for name, said in told
        if said.get("trust") != "trusted"
    )
