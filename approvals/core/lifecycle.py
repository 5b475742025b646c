"""The states of a request and what brings each about: nothing leaves an end state (R-APPR-2)."""

from enum import StrEnum


class RequestStatus(StrEnum):
    """pending → decided (enough people agreed, or one said no) | expired (nobody in time) | withdrawn (its run ended)."""

    PENDING = "pending"
    DECIDED = "decided"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


ENDS = (RequestStatus.DECIDED, RequestStatus.EXPIRED, RequestStatus.WITHDRAWN)


class DecisionKind(StrEnum):
    """What can be said to a request."""

    APPROVE = "approve"
    EDIT = "edit"
    REJECT = "reject"
    ANSWER = "answer"
    HAPPENED = "happened"
    NOT_HAPPENED = "not_happened"
    CANCEL = "cancel"


FITTING: dict[str, tuple[DecisionKind, ...]] = {
    "action": (DecisionKind.APPROVE, DecisionKind.EDIT, DecisionKind.REJECT),
    "reconciliation": (DecisionKind.HAPPENED, DecisionKind.NOT_HAPPENED, DecisionKind.CANCEL),
    "clarification": (DecisionKind.ANSWER,),
}
AGREEING = (DecisionKind.APPROVE, DecisionKind.EDIT)
