"""What makes a goal unsafe to work on: plain patterns, each with its name. A detector finds; the graph
decides."""

import re

PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("private_key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")),
    (
        "asks_for_secrets",
        re.compile(r"(?i)\b(reveal|print|show|send)\b.{0,40}\b(system prompt|api key|password|secrets?)\b"),
    ),
    (
        "overrides_rules",
        re.compile(
            r"(?i)\b(ignore|disregard|bypass)\b.{0,40}\b(instructions|rules|approvals?|polic(y|ies))\b"
        ),
    ),
    ("control_characters", re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")),
)


def unsafe(text: str) -> str | None:
    """The name of the first pattern found, or None."""
    return next((name for name, pattern in PATTERNS if pattern.search(text)), None)
