"""When enough people have agreed (R-APPR-5): distinct people, to the very same arguments."""

from collections.abc import Iterable
from typing import NamedTuple

from approvals.core.lifecycle import AGREEING


class Vote(NamedTuple):
    """One person's word, as far as counting goes. `arguments` None: those of the packet."""

    owner: str
    kind: str
    arguments: bytes | None


def agreed(votes: Iterable[Vote], arguments: bytes | None) -> int:
    """How many distinct people agreed to just `arguments`; an approval of the packet is none of an edit."""
    owners = [vote.owner for vote in votes if vote.kind in AGREEING and vote.arguments == arguments]
    return len(dict.fromkeys(owners))


def enough(votes: Iterable[Vote], arguments: bytes | None, quorum: int) -> bool:
    """Whether at least `quorum` people did; a quorum below one asks for one."""
    return agreed(votes, arguments) >= max(quorum, 1)
