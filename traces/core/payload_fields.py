"""The event fields that name content stored as payloads (docs/trace-format.md)."""

from collections.abc import Mapping
from typing import Any, Final

CONTENT: Final[Mapping[str, tuple[str, ...]]] = {
    "task_submitted": ("goal",),
    "run_finished": ("result",),
    "model_called": ("request",),
    "model_replied": ("reply",),
    "model_failed": ("detail",),
    "call_requested": ("arguments",),
    "call_not_run": ("result",),
    "call_attempted": ("arguments",),
    "call_observed": ("observation",),
    "parser_drifted": ("observation",),
    "fact_committed": ("digest", "observation"),
    "failure_committed": ("observation",),
    "approval_requested": ("packet",),
    "approval_decided": ("arguments",),
    "question_answered": ("answer",),
    "output_drafted": ("draft",),
    "output_verified": ("draft",),
    "result_finalized": ("result",),
    "late_outcome": ("observation",),
}
_HEX: Final = frozenset("0123456789abcdef")


def named_by(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the digests (hex) of the content that one event names."""
    values = (body.get(field) for field in CONTENT.get(str(body.get("kind")), ()))
    return tuple(value for value in values if isinstance(value, str) and is_digest(value))


def is_digest(text: str) -> bool:
    """Return whether a text is a digest in hex."""
    return len(text) == 64 and _HEX.issuperset(text)
