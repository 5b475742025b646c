"""What becomes of a call by what came back of it: the one table of docs/ring.md (R-TOOL-9, R-TOOL-10)."""

from enum import StrEnum
from typing import Final, NamedTuple

# In runs of an earlier core no answer but silence left a change open.
OPEN_SINCE: Final = 11
# Statuses that a service gives before it does anything.
REFUSALS: Final = frozenset({400, 401, 403, 404, 405, 413, 415, 422, 429})
# Statuses of an error that may pass.
PASSING: Final = frozenset({408, 425})


class Answer(StrEnum):
    """What came back of a call that was sent, where it is no result.

    none: nothing, or not all of it; unreadable: a success of another form, or too large; broke: an error
    that may pass; error: an answer that says that it failed; refused: a status that is given before
    anything is done.
    """

    NONE = "none"
    UNREADABLE = "unreadable"
    BROKE = "broke"
    ERROR = "error"
    REFUSED = "refused"


class Look(StrEnum):
    """What a look-up brought that did not find the effect; `absent`: it answered that it is not there."""

    NOT_YET = "not_yet"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class Fate(StrEnum):
    """failed: nothing was changed; open: the error is told, what it may have changed stays open; repeat:
    under its key, or because it surely was not made; look_up: the tool says; in_doubt: a person says."""

    FAILED = "failed"
    OPEN = "open"
    REPEAT = "repeat"
    LOOK_UP = "look_up"
    IN_DOUBT = "in_doubt"


class Came(NamedTuple):
    """What is known of a call without a result. `before`: an earlier request of the same action is open;
    `keys` and `lookup` are what its tool declares, `final` that its errors mean no effect."""

    mutating: bool
    sent: bool
    answer: Answer
    keys: bool = False
    repeats_left: bool = False
    lookup: bool = False
    conclusive: bool = False
    final: bool = False
    before: bool = False
    look: Look = Look.NOT_YET


def fate_of(came: Came) -> Fate:
    """What is done about a call that brought no result."""
    answer = _resolve_effective_answer(came)
    if answer is None:
        return Fate.FAILED
    may_pass = answer in (Answer.NONE, Answer.BROKE)
    if came.look is Look.ABSENT and came.conclusive:
        return Fate.REPEAT if may_pass else Fate.FAILED
    if came.look is Look.NOT_YET:
        if came.keys and came.repeats_left and may_pass:
            return Fate.REPEAT
        if came.lookup:
            return Fate.LOOK_UP
    return Fate.OPEN if answer in (Answer.BROKE, Answer.ERROR) else Fate.IN_DOUBT


def answer_of(status: int) -> Answer:
    """The class of an answer that is no success, by its status."""
    if status in REFUSALS:
        return Answer.REFUSED
    return Answer.BROKE if status >= 500 or status in PASSING else Answer.ERROR


def _resolve_effective_answer(came: Came) -> Answer | None:
    """The answer as far as it speaks for the action as a whole; None where it surely changed nothing. Of a
    request that is open from before it says nothing."""
    if not came.mutating:
        return None
    if not came.sent:
        return Answer.NONE if came.before else None
    declared = came.final and came.answer in (Answer.BROKE, Answer.ERROR)
    if came.answer is Answer.REFUSED or declared:
        return Answer.ERROR if came.before else None
    return came.answer
