"""Quorum of an approval: distinct people who agreed to exactly the same arguments (R-APPR-5).

Of people who are related to each other, one counts.
"""

from collections.abc import Iterable
from typing import NamedTuple

from approvals.core.lifecycle import AGREEING
from approvals.core.policy import Decider, Refusal, Rule


class Vote(NamedTuple):
    """One person's decision, as far as counting needs it. `arguments` None: those of the packet."""

    owner: str
    kind: str
    arguments: bytes | None
    principal: str = ""


def count_agreeing_people(votes: Iterable[Vote], arguments: bytes | None) -> int:
    """Count the distinct people who agreed to exactly `arguments`.

    An approval of the packet does not count for an edit.
    """
    return len(dict.fromkeys(vote.owner for vote in _filter_agreeing_votes(votes, arguments)))


def has_quorum(votes: Iterable[Vote], arguments: bytes | None, quorum: int) -> bool:
    """Return whether at least `quorum` people agreed to `arguments`; a quorum below one counts as one."""
    return count_agreeing_people(votes, arguments) >= max(quorum, 1)


def agreement_refusal(votes: Iterable[Vote], arguments: bytes | None, decider: Decider) -> Refusal | None:
    """Return why the decider may not agree in addition to those who have; None if they may.

    Of related people, the first who agrees to `arguments` counts; the others may still refuse.
    """
    others = [vote for vote in _filter_agreeing_votes(votes, arguments) if vote.owner != decider.owner]
    if not any(decider.is_related_to((vote.principal,), (vote.owner,)) for vote in others):
        return None
    sentence = "a person related to you has agreed already, and of related people one counts"
    return Refusal(rule=Rule.RELATED_AGREED, sentence=sentence)


def _filter_agreeing_votes(votes: Iterable[Vote], arguments: bytes | None) -> list[Vote]:
    return [vote for vote in votes if vote.kind in AGREEING and vote.arguments == arguments]
