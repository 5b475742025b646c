"""Labels of event kinds on a page: title, actor and mood."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from orchestrator.core.readmodel.reason_texts import in_words


class Voice(StrEnum):
    """The actor of a row: a model, a tool, people, the run itself, its money, its answer."""

    MODEL = "model"
    TOOL = "tool"
    PEOPLE = "people"
    RUN = "run"
    MONEY = "money"
    ANSWER = "answer"


class Mood(StrEnum):
    """The mood of a row: done, in progress, waiting for people, a problem, or a mere note."""

    DONE = "done"
    BUSY = "busy"
    WAIT = "wait"
    PROBLEM = "problem"
    NOTE = "note"


class EventLabel(NamedTuple):
    """An event as it is read for a page; `said` is its body."""

    seq: int
    at: datetime
    kind: str
    actor: str
    said: Mapping[str, Any]


class Kind(NamedTuple):
    """One kind: its title, its actor, its mood, and the fields that hold the details.

    `alone`: a row of its own in the compact timeline, unless it belongs to another row.
    """

    words: str
    voice: Voice
    mood: Mood
    fields: tuple[str, ...] = ()
    alone: bool = False


V, M = Voice, Mood
KINDS: Mapping[str, Kind] = {
    "task_submitted": Kind("Task submitted", V.RUN, M.NOTE, ("workflow", "mode"), alone=True),
    "run_started": Kind("Run started", V.RUN, M.NOTE, alone=True),
    "run_retried": Kind("Begins where another run stood", V.PEOPLE, M.NOTE, ("record", "reason"), alone=True),
    "run_suspended": Kind("Waits for people", V.RUN, M.WAIT, ("awaiting",)),
    "run_resumed": Kind("Goes on", V.RUN, M.NOTE, ("cause",)),
    "run_paused": Kind("Paused", V.RUN, M.WAIT, ("reason",), alone=True),
    "cancel_asked": Kind("Cancel asked for", V.PEOPLE, M.NOTE, ("reason",), alone=True),
    "stop_asked": Kind("Emergency stop", V.PEOPLE, M.PROBLEM, ("scope", "target", "reason"), alone=True),
    "interrupt_taken": Kind("Interrupted", V.RUN, M.PROBLEM, ("interrupt", "reason"), alone=True),
    "run_finished": Kind("Run ended", V.RUN, M.DONE, ("terminal_code", "reason"), alone=True),
    "phase_skipped": Kind("Phase skipped", V.RUN, M.NOTE, ("reason",)),
    "phase_noted": Kind("Phase passed", V.RUN, M.NOTE, ("artifact", "detail")),
    "policy_decided": Kind("Policy decided", V.RUN, M.NOTE, ("decision", "rule", "detail")),
    "budget_assigned": Kind("Budget assigned", V.MONEY, M.NOTE),
    "model_called": Kind("Model called", V.MODEL, M.BUSY, ("role", "profile", "attempt")),
    "model_replied": Kind("Model replied", V.MODEL, M.DONE, ("shape", "finish")),
    "model_failed": Kind("Model failed", V.MODEL, M.PROBLEM, ("error",)),
    "model_failed_over": Kind(
        "Another model takes over", V.MODEL, M.PROBLEM, ("profile", "to", "reason", "attempts"), alone=True
    ),
    "model_awaited": Kind("Waits for the model", V.MODEL, M.WAIT, ("profile", "cause", "by"), alone=True),
    "retry_scheduled": Kind("Tries again", V.RUN, M.NOTE, ("attempt", "delay_ms", "cause")),
    "call_requested": Kind("Call asked for", V.TOOL, M.BUSY, ("tool", "by")),
    "call_checked": Kind("Call checked", V.TOOL, M.NOTE, ("step", "decision", "rule", "detail")),
    "call_not_run": Kind("Call not run", V.TOOL, M.PROBLEM, ("status", "detail")),
    "call_attempted": Kind("Call sent", V.TOOL, M.BUSY, ("tool", "attempt")),
    "call_observed": Kind("Answer observed", V.TOOL, M.NOTE, ("status", "size")),
    "call_verified": Kind("Answer checked", V.TOOL, M.NOTE, ("verdict", "validator", "detail")),
    "plan_repaired": Kind("Another tool in its place", V.RUN, M.NOTE, ("tool", "by", "reason"), alone=True),
    "safety_found": Kind(
        "A safety detector found something",
        V.RUN,
        M.PROBLEM,
        ("detector", "rule", "place", "subject", "severity"),
        alone=True,
    ),
    "conflict_waited": Kind("Waits for another run's write", V.TOOL, M.WAIT, ("tool", "key")),
    "parser_drifted": Kind("Not in its declared form", V.TOOL, M.PROBLEM, ("tool", "detail")),
    "fact_committed": Kind("Fact committed", V.TOOL, M.DONE, ("fact", "trust", "validator")),
    "failure_committed": Kind("Failure committed", V.TOOL, M.PROBLEM, ("tool", "error", "attempt")),
    "call_in_doubt": Kind("In doubt", V.TOOL, M.PROBLEM, ("tool", "reason")),
    "effect_left_open": Kind("May have happened", V.TOOL, M.PROBLEM, ("tool", "error")),
    "effect_settled": Kind("Open no longer", V.TOOL, M.DONE, ("tool", "by")),
    "call_recovered": Kind("Resolved after a takeover", V.TOOL, M.NOTE, ("resolution", "detail")),
    "grounding_violation": Kind(
        "Claim without a call behind it", V.RUN, M.PROBLEM, ("claim", "where"), alone=True
    ),
    "reservation_refused": Kind(
        "Budget refused", V.MONEY, M.PROBLEM, ("dimension", "wanted", "left", "limit", "account"), alone=True
    ),
    "budget_settled": Kind("Settled", V.MONEY, M.NOTE),
    "budget_extended": Kind("Budget extended", V.MONEY, M.NOTE, ("reason",), alone=True),
    "cost_corrected": Kind(
        "Cost corrected", V.MONEY, M.NOTE, ("delta", "price_version", "reason"), alone=True
    ),
    "price_corrected": Kind(
        "Price corrected", V.MONEY, M.NOTE, ("subject", "was", "price_version", "reason"), alone=True
    ),
    "cost_threshold": Kind("80 % of the cost", V.MONEY, M.NOTE, ("passed", "profile"), alone=True),
    "breaker_tripped": Kind(
        "Breaker tripped", V.RUN, M.PROBLEM, ("breaker", "reason", "subject", "limit", "actual"), alone=True
    ),
    "approval_requested": Kind("Asked people", V.PEOPLE, M.WAIT, ("request_kind", "queue", "quorum")),
    "approval_decided": Kind("Decided", V.PEOPLE, M.DONE, ("decision", "role")),
    "approval_expired": Kind("Nobody decided in time", V.PEOPLE, M.PROBLEM),
    "approval_withdrawn": Kind("Request withdrawn", V.PEOPLE, M.NOTE, ("reason",)),
    "question_answered": Kind("Question answered", V.PEOPLE, M.DONE),
    "output_drafted": Kind("Answer drafted", V.ANSWER, M.NOTE, alone=True),
    "output_verified": Kind(
        "Answer checked", V.ANSWER, M.DONE, ("verdict", "validator", "detail"), alone=True
    ),
    "result_finalized": Kind("Result finalized", V.ANSWER, M.DONE),
    "completion_checked": Kind("Completion checked", V.RUN, M.NOTE, ("verdict", "met", "of", "detail")),
    "late_outcome": Kind("Late outcome", V.RUN, M.PROBLEM, ("status",), alone=True),
    "reconciled": Kind("Reconciled", V.PEOPLE, M.DONE, ("verdict", "reason"), alone=True),
    "payload_erased": Kind("Content erased", V.PEOPLE, M.NOTE, ("payloads", "reason"), alone=True),
    "decision_refused": Kind("Decision refused", V.PEOPLE, M.PROBLEM, ("reason",), alone=True),
    "unwinding_began": Kind(
        "Takes back what it did", V.RUN, M.NOTE, ("terminal_code", "deeds", "mode"), alone=True
    ),
    "deed_undone": Kind("Undone", V.TOOL, M.DONE, ("tool", "wanted"), alone=True),
    "deed_left": Kind("Left for people", V.TOOL, M.PROBLEM, ("tool", "why", "detail"), alone=True),
    "unwinding_ended": Kind("All seen to", V.RUN, M.NOTE, ("undone", "left")),
}
UNKNOWN = Kind("Event", V.RUN, M.NOTE)


class MoodByField(NamedTuple):
    """A kind whose mood depends on the value of one of its fields."""

    field: str
    words: frozenset[str]
    well: Mood
    badly: Mood


def _make_judged_kind(field: str, *words: str, well: Mood = Mood.NOTE) -> MoodByField:
    return MoodByField(field, frozenset(words), well, Mood.PROBLEM)


JUDGED: Mapping[str, MoodByField] = {
    "call_verified": _make_judged_kind("verdict", "verified", "observed_only"),
    "output_verified": _make_judged_kind("verdict", "passed"),
    "policy_decided": _make_judged_kind("decision", "allow"),
    "call_checked": _make_judged_kind("decision", "allow", "sandbox", "approval_required"),
    "breaker_tripped": _make_judged_kind("breaker", "privileged_action"),
    "approval_decided": _make_judged_kind(
        "decision", "approve", "edit", "answer", "extend", "revise", well=Mood.DONE
    ),
    "call_not_run": _make_judged_kind("status", "sent_back"),
    "run_finished": _make_judged_kind("terminal_code", "SUCCESS", well=Mood.DONE),
}


class EventText(NamedTuple):
    """One event in words; `detail` may hold text from outside."""

    words: str
    detail: str
    voice: Voice
    mood: Mood


def said_of(told: EventLabel) -> EventText:
    """Describe an event in words."""
    kind = KINDS.get(told.kind, UNKNOWN)
    found = ((name, told.said.get(name)) for name in kind.fields)
    parts = [_format_detail_part(name, str(value)) for name, value in found if value not in (None, "")]
    parts += [f"{name} {amount}" for name, amount in sorted(told.said.get("amounts", {}).items())]
    return EventText(kind.words, " · ".join(parts), kind.voice, mood_of(told))


def _format_detail_part(name: str, value: str) -> str:
    if name in ("reason", "rule") and (words := in_words(value)) != value:
        return words
    if name in ("dimension", "breaker", "interrupt"):
        # The event's title already names the field.
        return "cost" if value == "cost_usd" else value.replace("_", " ")
    if name == "passed":
        return "spent: what is left goes to the cheaper model" if value == "True" else "not spent any more"
    return f"{name.replace('_', ' ')} {value}"


def mood_of(told: EventLabel) -> Mood:
    """Return the mood of an event: a failed check is a problem, a gate for people is not."""
    judged = JUDGED.get(told.kind)
    if judged is None:
        return KINDS.get(told.kind, UNKNOWN).mood
    return judged.well if told.said.get(judged.field) in judged.words else judged.badly
