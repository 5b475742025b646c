"""The terminal codes as one table: class, session state, trigger (R-GRAPH-15)."""

from enum import StrEnum
from typing import NamedTuple


class Status(StrEnum):
    """The states of a run (R-SESS-5)."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    AWAITING_GATE = "awaiting_gate"
    AWAITING_INPUT = "awaiting_input"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    EXPIRED = "expired"
    REJECTED = "rejected"
    CANCELLED = "cancelled"


class TerminalClass(StrEnum):
    """The kind of record that a run ends with: a result, a failure report or a resumable halt record."""

    COMMIT = "COMMIT"
    FAIL = "FAIL"
    HALT = "HALT"


class TerminalCode(StrEnum):
    """The reason why a run ended; every run has exactly one."""

    SUCCESS = "SUCCESS"
    PARTIAL_SUCCESS = "PARTIAL_SUCCESS"
    IMPOSSIBLE = "IMPOSSIBLE"
    MISSING_INFO = "MISSING_INFO"
    AMBIGUOUS_INTENT = "AMBIGUOUS_INTENT"
    CONFIRM_REQUIRED = "CONFIRM_REQUIRED"
    REVIEW_REQUIRED = "REVIEW_REQUIRED"
    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"
    TIMEOUT = "TIMEOUT"
    VALIDATION_FAIL = "VALIDATION_FAIL"
    LOW_CONFIDENCE = "LOW_CONFIDENCE"
    SOURCE_CONFLICT = "SOURCE_CONFLICT"
    REPEATED_FAILURE = "REPEATED_FAILURE"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    UNSAFE_DETECTION = "UNSAFE_DETECTION"
    UNAVAILABLE_DEP = "UNAVAILABLE_DEP"
    USER_CANCEL = "USER_CANCEL"


class Ending(NamedTuple):
    """One row: the class, the final status, the meaning and the next safe action."""

    terminal_class: TerminalClass
    status: Status
    meaning: str
    next_safe_action: str


_COMMIT, _FAIL, _HALT = TerminalClass.COMMIT, TerminalClass.FAIL, TerminalClass.HALT
C, S = TerminalCode, Status
ENDINGS: dict[TerminalCode, Ending] = {
    C.SUCCESS: Ending(_COMMIT, S.COMPLETED, "Every criterion holds and the output was verified.", "Use the result."),
    C.PARTIAL_SUCCESS: Ending(_COMMIT, S.COMPLETED, "A marked part of the goal was reached.", "Use the part that is marked verified, and submit the rest again."),
    C.IMPOSSIBLE: Ending(_FAIL, S.FAILED, "The goal cannot be reached with what is permitted.", "Change the goal or the boundary."),
    C.MISSING_INFO: Ending(_FAIL, S.FAILED, "Needed information was not given.", "Submit again with the missing fields."),
    C.AMBIGUOUS_INTENT: Ending(_FAIL, S.FAILED, "The goal has several readings and none was chosen.", "State which reading is meant."),
    C.CONFIRM_REQUIRED: Ending(_FAIL, S.REJECTED, "A confirmation was needed and was not given.", "Ask the approver for the reason, then submit again."),
    C.REVIEW_REQUIRED: Ending(_FAIL, S.REJECTED, "A review was needed and did not pass.", "Read the review and submit again."),
    C.BUDGET_EXHAUSTED: Ending(_FAIL, S.FAILED, "The next effect needed more than was left of its budget.", "Ask whether to continue with a larger budget."),
    C.TIMEOUT: Ending(_FAIL, S.FAILED, "The allowed working time was used up.", "Submit again with more time, or a smaller goal."),
    C.VALIDATION_FAIL: Ending(_FAIL, S.FAILED, "The output did not pass its checks within the allowed attempts.", "Read the failed checks."),
    C.LOW_CONFIDENCE: Ending(_FAIL, S.FAILED, "The evidence is too weak to commit.", "Have a person decide on the evidence."),
    C.SOURCE_CONFLICT: Ending(_FAIL, S.FAILED, "Trusted sources contradict each other on a fact that matters.", "Settle the conflict at its source."),
    C.REPEATED_FAILURE: Ending(_FAIL, S.FAILED, "The same failure or the same call came again and again.", "Read the breaker's reason before trying again."),
    C.PERMISSION_DENIED: Ending(_FAIL, S.FAILED, "The run asked for what it may not do.", "Have an admin look at the boundary."),
    C.UNSAFE_DETECTION: Ending(_FAIL, S.FAILED, "A safety rule was broken; the run was closed.", "Have security review the trace."),
    C.UNAVAILABLE_DEP: Ending(_FAIL, S.FAILED, "A model or tool that is needed cannot be reached.", "Try again when it is back."),
    C.USER_CANCEL: Ending(_HALT, S.CANCELLED, "A person or the system stopped the run.", "Fork a new run from the halt record."),
}  # fmt: skip

TERMINAL_STATUSES = frozenset({S.COMPLETED, S.FAILED, S.EXPIRED, S.REJECTED, S.CANCELLED})


def final_status(code: TerminalCode, *, expired: bool) -> Status:
    """Return the final status of a run: the code's own, or `expired` (R-GRAPH-15).

    A failure counts as expired when a gate or the session ran out.
    """
    if expired and ENDINGS[code].terminal_class is TerminalClass.FAIL:
        return Status.EXPIRED
    return ENDINGS[code].status
