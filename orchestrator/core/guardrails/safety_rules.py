"""Named rules that make a goal unsafe to work on, or a reply unsafe to use.

A detector finds; the graph, or the node that asked, decides.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("private_key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\[sealed:private_key:")),
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


def find_unsafe_pattern(text: str) -> str | None:
    """Return the name of the first pattern found, or None."""
    return next((name for name, pattern in PATTERNS if pattern.search(text)), None)


# Kinds of secrets (traces.core.redaction) that a reply may never contain. A password in a text is more
# often an example than a secret.
GRAVE = ("api_key", "bearer", "private_key")
# Shorter lines of instructions may occur by chance.
TELLING = 60


def find_reply_violation(
    written: Sequence[str], redacted: Iterable[str], instructions: Collection[str]
) -> str | None:
    """Return the rule that a reply breaks, or None.

    `written` are its answer and its calls' arguments; `redacted` are the kinds of secrets that were removed
    from it; `instructions` are the prompts that the run is pinned to. The model's input contains no secret,
    because secrets are removed there too: a secret in the reply was leaking from elsewhere.
    """
    grave = sorted(kind for kind in redacted if kind in GRAVE)
    if grave:
        return f"secret:{grave[0]}"
    if any(line in said for said in written for text in instructions for line in _telling_lines(text)):
        return "instructions_disclosed"
    return None


@lru_cache(256)
def _telling_lines(instructions: str) -> tuple[str, ...]:
    """Return the lines that do not occur by chance. The result is cached: the same few prompts recur."""
    lines = [line.strip() for line in instructions.splitlines()]
    return tuple(line for line in lines if len(line) >= TELLING)
