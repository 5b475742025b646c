"""The status of a run in one sentence: who is awaited, since when, and what happens next (R-UI-3)."""

from collections.abc import Mapping
from datetime import datetime

from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.common.run_status import ENDINGS, Status, TerminalCode
from orchestrator.core.domain.run_state import ModelWait
from orchestrator.core.readmodel.reason_texts import in_words


class AwaitedRequest(FrozenModel):
    """An open request: its kind, its tool, its queue, the quorum and approvals so far, its times."""

    kind: str
    tool: str = ""
    queue: str = ""
    quorum: int = 1
    agreed: int = 0
    since: datetime
    until: datetime


class Facts(FrozenModel):
    """The input of the sentence.

    `since` is when the status was set, if known. `away` describes the model that the run waits for.
    """

    status: Status
    position: str = ""
    code: TerminalCode | None = None
    reason: str = ""
    since: datetime | None = None
    awaited: AwaitedRequest | None = None
    deadline: datetime | None = None
    in_flight: tuple[str, ...] = ()
    halting: str = ""
    away: ModelWait | None = None


class StatusSummary(FrozenModel):
    """The sentence in parts.

    `what` and `then` are plain words. `because` may hold text from outside. `then` happens at `until`.
    `turned` says what happened at `since`.
    """

    what: str
    because: str = ""
    since: datetime | None = None
    until: datetime | None = None
    then: str = ""
    next: str = ""
    turned: str = "changed"


_WAITS: Mapping[str, str] = {
    "action": "Waits for {who} to decide on {tool}",
    "reconciliation": "Waits for {who} to say whether {tool} happened",
    "clarification": "Waits for an answer to a question",
    "budget": "Its budget is used up; waits for {who} to extend or refuse it",
}


SINCE = "waiting for the model since"


def summarize_run_status(facts: Facts) -> StatusSummary:
    """Return the sentence in parts. Pure: the same facts give the same words."""
    if facts.code is not None or facts.status in (Status.EXPIRED, Status.CANCELLED):
        return _summarize_ended_run(facts)
    if facts.awaited is not None:
        return _summarize_approval_wait(facts, facts.awaited)
    if facts.status is Status.PAUSED:
        return StatusSummary(
            what="Paused; nothing new starts until someone resumes it",
            because=facts.reason,
            since=facts.since,
            until=facts.deadline,
            then=_describe_expiry(facts),
            next="Resume it, or cancel it.",
        )
    if facts.status is Status.QUEUED:
        return StatusSummary(what="Queued; a worker takes it as soon as one is free", since=facts.since,
                        until=facts.deadline, then=_describe_expiry(facts))  # fmt: skip
    if facts.away is not None and not facts.halting:
        return _summarize_model_wait(facts, facts.away)
    return StatusSummary(
        what=_describe_activity(facts), since=facts.since, until=facts.deadline, then=_describe_expiry(facts)
    )


def _summarize_model_wait(facts: Facts, away: ModelWait) -> StatusSummary:
    """Describe a run that waits for its model.

    The run continues by itself, or gives up when its patience is over.
    """
    if away.by == "line":
        return StatusSummary(
            what=f"Waits in line for the model {away.profile}, which takes only so many calls at once",
            since=away.since, turned=SINCE, until=facts.deadline, then=_describe_expiry(facts),
            next="It goes on by itself when its turn comes.",
        )  # fmt: skip
    sooner = facts.deadline is not None and (away.until is None or facts.deadline < away.until)
    return StatusSummary(
        what=f"Waits for the model {away.profile}", because=in_words(away.cause), since=away.since,
        turned=SINCE, until=facts.deadline if sooner else away.until,
        then=_describe_expiry(facts) if sooner else "it gives up; the workflow takes its unavailable path",
        next="It goes on by itself when the model answers; its working time does not run meanwhile.",
    )  # fmt: skip


def _describe_activity(facts: Facts) -> str:
    if facts.halting:
        return f"Stopping ({facts.halting}) as soon as the calls in progress have finished"
    doing = " and ".join(facts.in_flight)
    return f"Running at {facts.position}: {doing}" if doing else f"Running at {facts.position}"


def _describe_expiry(facts: Facts) -> str:
    return "the run expires" if facts.deadline is not None else ""


def _summarize_approval_wait(facts: Facts, awaited: AwaitedRequest) -> StatusSummary:
    who = f"the queue {awaited.queue}" if awaited.queue else "a reviewer"
    if awaited.quorum > 1:
        who = f"{awaited.quorum} people of {who} ({awaited.agreed} agreed)"
    what = _WAITS.get(awaited.kind, "Waits for people").format(who=who, tool=awaited.tool or "the answer")
    held = "; it is paused, too" if facts.status is Status.PAUSED else ""
    unanswered = "the question expires" if awaited.kind == "clarification" else "the request expires"
    return StatusSummary(
        what=what + held, since=awaited.since, until=awaited.until,
        then=f"{unanswered} and the workflow takes its expired path",
    )  # fmt: skip


def _summarize_ended_run(facts: Facts) -> StatusSummary:
    ending = ENDINGS.get(facts.code) if facts.code is not None else None
    words = {
        Status.COMPLETED: "Completed", Status.FAILED: "Failed", Status.EXPIRED: "Expired",
        Status.REJECTED: "Rejected", Status.CANCELLED: "Cancelled",
    }  # fmt: skip
    meaning = f": {ending.meaning[0].lower()}{ending.meaning[1:].rstrip('.')}" if ending is not None else ""
    because = "" if ending is not None and facts.reason == ending.meaning else in_words(facts.reason)
    return StatusSummary(
        what=f"{words.get(facts.status, 'Ended')}{meaning}", because=because, since=facts.since,
        next=ending.next_safe_action if ending is not None else "",
    )  # fmt: skip
