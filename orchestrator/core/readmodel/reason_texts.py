"""Reason texts: the one table from internal reason codes to sentences that a person reads."""

import re
from typing import Final

from orchestrator.core.common.frozen_model import FrozenModel

_INTERNAL: Final = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)+")
SENTENCES: Final = {
    # Why a run ended.
    "deadline_passed": "Its deadline passed.",
    "wall_clock": "Its working time was used up.",
    "transitions": "It made as many steps as it may.",
    "cycle_limit": "It went round the same part of its graph as often as it may.",
    "identical_call": "It asked for the same call again and again.",
    "state_unchanged": "It went on without anything changing.",
    "repeated_errors": "The same error came again and again.",
    "repeated_denials": "It asked again and again for what it may not do.",
    "model_refused": "The model declined to do this.",
    "empty_reply": "The model answered nothing.",
    "no_draft": "There was no draft to check.",
    "gate_expired": "Nobody decided in time.",
    "question_expired": "Nobody answered the question in time.",
    "over_ceiling": "The tenant's ceiling for one run was lowered meanwhile.",
    "overrun": "A provider reported more than was reserved.",
    "cancelled": "It was cancelled.",
    # Why a model could not be called.
    "unreachable": "Nobody answers at its address.",
    "unavailable": "It says that it takes nothing just now.",
    "cut_off": "The connection broke before the reply was whole.",
    "server_error": "Its server had an error.",
    "rate_limited": "It was asked too often.",
    "timeout": "It did not answer in time.",
    "circuit_open": "It failed again and again, so it is left alone for a while.",
    "malformed": "What it answered is no reply.",
    "unauthorized": "The key is not taken.",
    "no_key": "There is no key.",
    "no_such_model": "There is no such model at its address.",
    # Which limit was too small for the next step.
    "steps": "It has taken as many steps as it may.",
    "model_turns": "It has no model call left.",
    "tool_calls": "It has no tool call left.",
    "external_calls": "It has no call to the outside left.",
    "input_tokens": "It has too few tokens left for its next prompt.",
    "output_tokens": "It has too few tokens left for another reply.",
    "total_tokens": "It has too few tokens left for another call.",
    "cost_usd": "It has too little money left for its next step.",
    "wall_clock_seconds": "Its working time was used up.",
    "retries": "It tried the same call as often as it may.",
    "reflections": "It looked over its work as often as it may.",
    "replans": "It changed its plan as often as it may.",
    "context_tokens": "Its next prompt is longer than it may be.",
    "memory_writes": "It has no write to memory left.",
    "side_effects": "It has no change left that it may make unasked.",
    "granted_side_effects": "It has no change left that people may grant.",
    "depth": "It went as deep as it may.",
    # Which rule stopped or held a call.
    "no_grant": "waiting for approval",
    "grant_void": "the approval is no longer valid",
    "open_effect": "the same may have happened before; a person says first whether it did",
    "not_in_registry": "there is no such tool",
    "schema": "its arguments do not fit the tool",
    "least_tool": "another tool does the same for less",
    "parser_drift": "its answers do not fit their declared form",
    "rate_limit": "the tool was called too often in a minute",
    "read_only": "this tool is to be asked for",
    "local_write": "it writes, and is to be asked for",
    "network": "it acts outside, and is to be asked for",
    "delegated": "it acts for somebody, and is to be asked for",
    "destructive": "it cannot be undone or moves money, and is to be asked for",
}

LEFT: Final = {
    # Why a change that a run made was not undone (R-TOOL-15).
    "in_doubt": "nobody knows whether it happened",
    "open": "it may have happened: what came back was an error, or nothing",
    "irreversible": "it cannot be taken back",
    "no_compensation": "its tool names no way back",
    "boundary_reports": "the boundary wants a report only",
    "rejected": "a person said that it stays",
    "nobody_decided": "nobody decided in time whether to take it back",
    "emergency_stop": "an emergency stop is in force",
    "not_permitted": "the boundary does not allow the tool that takes it back",
    "policy_denied": "the policy does not let a run take it back; a person has to",
    "tool_stopped": "the tool that takes it back was stopped",
    "arguments_unknown": "what came back does not say what to take back",
    "over_budget": "nothing was left to take it back with",
    "undo_in_doubt": "nobody knows whether taking it back happened",
    "undo_not_verified": "it was taken back, and does not show as such",
    "undo_failed": "taking it back failed",
}


class FailureDetail(FrozenModel):
    """The verbatim text of a fact's source, recorded when a workflow branched on that fact."""

    tool: str
    text: str


def left_in_words(why: str) -> str:
    """Describe why a change was not undone; a code of a later version is described by `in_words`."""
    return LEFT.get(why, in_words(why))


def in_words(reason: str) -> str:
    """Return a reason as a sentence for people.

    In an internal code that has no sentence of its own, dashes and underscores become spaces.
    """
    if reason in SENTENCES:
        return SENTENCES[reason]
    if reason.startswith("policy:"):
        return f"by where its values come from, {reason.replace(':', ' ')}"
    if not _INTERNAL.fullmatch(reason):
        return reason
    words = re.sub("[_-]", " ", reason)
    return f"{words[0].upper()}{words[1:]}."
