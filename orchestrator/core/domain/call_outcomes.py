"""Decide what happens to a call by what it brought back (R-TOOL-9, R-TOOL-10).

This is the one table of docs/ring.md.
"""

from enum import StrEnum
from typing import Final, NamedTuple

# Statuses that a service returns before it does anything.
REFUSALS: Final = frozenset({400, 401, 403, 404, 405, 413, 415, 422, 429})
# Statuses of an error that may be temporary.
PASSING: Final = frozenset({408, 425})


class Answer(StrEnum):
    """The class of an answer that is no result, for a call that was sent.

    none: nothing, or not all of it; unreadable: a success in another form, or too large; broke: an error
    that may be temporary; error: an answer that states a failure; refused: a status that is returned before
    anything is done.
    """

    NONE = "none"
    UNREADABLE = "unreadable"
    BROKE = "broke"
    ERROR = "error"
    REFUSED = "refused"


class LookUpMiss(StrEnum):
    """The result of a look-up that did not find the effect; `absent`: it answered that there is none."""

    NOT_YET = "not_yet"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class Fate(StrEnum):
    """The next step for a call without a result.

    failed: nothing was changed; open: the error is reported, and its possible change stays open; repeat:
    the call is sent again under its key, or because it certainly was not made; look_up: the tool is asked;
    in_doubt: a person decides.
    """

    FAILED = "failed"
    OPEN = "open"
    REPEAT = "repeat"
    LOOK_UP = "look_up"
    IN_DOUBT = "in_doubt"


class CallFacts(NamedTuple):
    """The known facts about a call without a result.

    `before`: an earlier request of the same action is open. `keys` and `lookup` are what its tool declares;
    `final`: the tool's errors mean that it had no effect.
    """

    mutating: bool
    sent: bool
    answer: Answer
    keys: bool = False
    repeats_left: bool = False
    lookup: bool = False
    conclusive: bool = False
    final: bool = False
    before: bool = False
    look: LookUpMiss = LookUpMiss.NOT_YET


def fate_of(came: CallFacts) -> Fate:
    """Return what to do about a call that brought no result."""
    answer = _resolve_effective_answer(came)
    if answer is None:
        return Fate.FAILED
    may_pass = answer in (Answer.NONE, Answer.BROKE)
    if came.look is LookUpMiss.ABSENT and came.conclusive:
        return Fate.REPEAT if may_pass else Fate.FAILED
    if came.look is LookUpMiss.NOT_YET:
        if came.keys and came.repeats_left and may_pass:
            return Fate.REPEAT
        if came.lookup:
            return Fate.LOOK_UP
    return Fate.OPEN if answer in (Answer.BROKE, Answer.ERROR) else Fate.IN_DOUBT


def answer_of(status: int) -> Answer:
    """Return the class of an unsuccessful answer, by its status."""
    if status in REFUSALS:
        return Answer.REFUSED
    return Answer.BROKE if status >= 500 or status in PASSING else Answer.ERROR


def _resolve_effective_answer(came: CallFacts) -> Answer | None:
    """Return the answer as it applies to the whole action; None if the action certainly changed nothing.

    An answer says nothing about an earlier request of the action that is still open.
    """
    if not came.mutating:
        return None
    if not came.sent:
        return Answer.NONE if came.before else None
    declared = came.final and came.answer in (Answer.BROKE, Answer.ERROR)
    if came.answer is Answer.REFUSED or declared:
        return Answer.ERROR if came.before else None
    return came.answer
