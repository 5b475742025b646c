"""The states of a request and the causes of its transitions; end states are final (R-APPR-2)."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple


class RequestStatus(StrEnum):
    """The state of a request; `pending` is the only state that is not final."""

    PENDING = "pending"
    DECIDED = "decided"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class Cause(StrEnum):
    """The cause that ends a request."""

    AGREED = "agreed"
    REFUSED = "refused"
    SENT_BACK = "sent_back"
    EXTENDED = "extended"
    ANSWERED = "answered"
    RECONCILED = "reconciled"
    TIME_UP = "time_up"
    RUN_ENDED = "run_ended"


class Move(NamedTuple):
    """One transition of the state diagram."""

    source: RequestStatus
    target: RequestStatus


MOVES: Mapping[Cause, Move] = MappingProxyType(
    {
        Cause.AGREED: Move(RequestStatus.PENDING, RequestStatus.DECIDED),
        Cause.REFUSED: Move(RequestStatus.PENDING, RequestStatus.DECIDED),
        Cause.SENT_BACK: Move(RequestStatus.PENDING, RequestStatus.DECIDED),
        Cause.EXTENDED: Move(RequestStatus.PENDING, RequestStatus.DECIDED),
        Cause.ANSWERED: Move(RequestStatus.PENDING, RequestStatus.DECIDED),
        Cause.RECONCILED: Move(RequestStatus.PENDING, RequestStatus.DECIDED),
        Cause.TIME_UP: Move(RequestStatus.PENDING, RequestStatus.EXPIRED),
        Cause.RUN_ENDED: Move(RequestStatus.PENDING, RequestStatus.WITHDRAWN),
    }
)


class DecisionKind(StrEnum):
    """A kind of decision on a request."""

    APPROVE = "approve"
    EDIT = "edit"
    REJECT = "reject"
    REVISE = "revise"
    EXTEND = "extend"
    ANSWER = "answer"
    HAPPENED = "happened"
    NOT_HAPPENED = "not_happened"
    CANCEL = "cancel"


# Decisions by kind of request; whether one can be sent back, its packet says (core/allowed_decisions.py).
FITTING: Mapping[str, tuple[DecisionKind, ...]] = MappingProxyType(
    {
        "action": (
            DecisionKind.APPROVE, DecisionKind.EDIT, DecisionKind.REVISE, DecisionKind.REJECT,
        ),
        "reconciliation": (DecisionKind.HAPPENED, DecisionKind.NOT_HAPPENED, DecisionKind.CANCEL),
        "clarification": (DecisionKind.ANSWER,),
        "budget": (DecisionKind.EXTEND, DecisionKind.REJECT),
    }
)  # fmt: skip
# The one additional field that a decision of this kind takes; other kinds take none.
GIVING: Mapping[DecisionKind, str] = MappingProxyType(
    {DecisionKind.EDIT: "arguments", DecisionKind.EXTEND: "amounts", DecisionKind.ANSWER: "answer"}
)
AGREEING = (DecisionKind.APPROVE, DecisionKind.EDIT)
CAUSES: Mapping[DecisionKind, Cause] = MappingProxyType(
    {
        DecisionKind.APPROVE: Cause.AGREED,
        DecisionKind.EDIT: Cause.AGREED,
        DecisionKind.REJECT: Cause.REFUSED,
        DecisionKind.REVISE: Cause.SENT_BACK,
        DecisionKind.EXTEND: Cause.EXTENDED,
        DecisionKind.ANSWER: Cause.ANSWERED,
        DecisionKind.HAPPENED: Cause.RECONCILED,
        DecisionKind.NOT_HAPPENED: Cause.RECONCILED,
        DecisionKind.CANCEL: Cause.RECONCILED,
    }
)
