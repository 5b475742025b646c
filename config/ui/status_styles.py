"""Label, icon and tone of states and risk classes, in one table that colours and style guide follow.

A tone is a set of three colours in `static/css/tokens.css`: `--<tone>-text`, `-tint`, `-solid`. A state is
never shown by colour alone: every chip has its icon and its label.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Tone(StrEnum):
    """The colour sets of states."""

    QUEUED = "queued"
    RUNNING = "running"
    APPROVAL = "approval"
    PAUSED = "paused"
    RETRYING = "retrying"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LIMIT = "limit"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Look(NamedTuple):
    """The content of a chip: label, icon and tone."""

    word: str
    icon: str
    tone: Tone


STATES: dict[str, Look] = {
    # Of runs, named as in R-SESS-5.
    "queued": Look("Queued", "circle", Tone.QUEUED),
    "in_progress": Look("Running", "play", Tone.RUNNING),
    "awaiting_gate": Look("Needs approval", "diamond", Tone.APPROVAL),
    "awaiting_input": Look("Needs an answer", "question", Tone.APPROVAL),
    "paused": Look("Paused", "pause", Tone.PAUSED),
    "completed": Look("Succeeded", "check", Tone.SUCCEEDED),
    "failed": Look("Failed", "cross", Tone.FAILED),
    "expired": Look("Expired", "hourglass", Tone.EXPIRED),
    "rejected": Look("Rejected", "thumb", Tone.CANCELLED),
    "cancelled": Look("Cancelled", "ban", Tone.CANCELLED),
    # Within a run, or of its end.
    "retrying": Look("Retrying", "loop", Tone.RETRYING),
    "limit": Look("Stopped at limit", "square", Tone.LIMIT),
    "partial": Look("Partly done", "half", Tone.SUCCEEDED),
    # Of the steps of a plan, and of criteria.
    "done": Look("Done", "check", Tone.SUCCEEDED),
    "refused": Look("Refused", "thumb", Tone.CANCELLED),
    "in_doubt": Look("In doubt", "alert", Tone.FAILED),
    "under_way": Look("Under way", "play", Tone.RUNNING),
    "waiting": Look("Waits", "diamond", Tone.APPROVAL),
    "held_up": Look("Held up", "hourglass", Tone.RETRYING),
    "ready": Look("Ready", "right", Tone.RUNNING),
    "behind": Look("Behind", "clock", Tone.QUEUED),
    "ahead": Look("Ahead", "circle", Tone.QUEUED),
    "left_out": Look("Left out", "ban", Tone.CANCELLED),
    "met": Look("Met", "check", Tone.SUCCEEDED),
    "unmet": Look("Not met", "cross", Tone.FAILED),
    "not_yet": Look("Not yet", "circle", Tone.QUEUED),
    "open": Look("Not looked at yet", "question", Tone.QUEUED),
    # Of requests, named as in R-APPR-2.
    "pending": Look("Waits", "diamond", Tone.APPROVAL),
    "decided": Look("Decided", "check", Tone.SUCCEEDED),
    "withdrawn": Look("Withdrawn", "ban", Tone.CANCELLED),
}
BY_CODE = {"BUDGET_EXHAUSTED": "limit", "TIMEOUT": "limit", "PARTIAL_SUCCESS": "partial"}
CLASSES: dict[str, tuple[str, str]] = {
    # value: letter, label (R-TOOL-2)
    "read_only": ("R0", "Read only"),
    "local_write": ("R1", "Local write"),
    "network": ("R2", "Network"),
    "delegated": ("R2", "Delegated"),
    "destructive": ("R3", "Destructive"),
    "disabled": ("R4", "Disabled"),
}


def state_look(status: str, terminal_code: str = "") -> Look:
    """Return the look of a state, refined by how a run ended. An unknown state is shown by its own name."""
    refined = BY_CODE.get(terminal_code, status) if status in {"completed", "failed"} else status
    return STATES.get(refined) or Look(status.replace("_", " ").capitalize(), "circle", Tone.QUEUED)


def class_look(risk: str) -> tuple[str, str, str]:
    """Return tone, letter and label of a risk class; an unknown class is shown as the most dangerous."""
    letter, word = CLASSES.get(risk, ("R4", risk.replace("_", " ").capitalize() or "Unknown"))
    return letter.lower(), letter, word
