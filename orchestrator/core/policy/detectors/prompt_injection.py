"""Text that speaks to a model as if it were its master."""

import re
from collections.abc import Iterator

from orchestrator.core.policy.detectors import DetectorInput, Place, Severity

WITHIN = 60
# Two words near each other in one sentence. They are looked for one by one, so that no text makes it slow.
PAIRS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "overrides_rules",
        re.compile(
            r"\b(?:(?P<a>ignore|disregard|forget|override|bypass)"
            r"|(?P<b>instructions?|rules|guidelines|prompts?|approvals?|polic(?:y|ies)))\b"
        ),
    ),
    (
        "asks_for_secrets",
        re.compile(
            r"\b(?:(?P<a>reveal|print|send|forward|upload|exfiltrate)"
            r"|(?P<b>system prompt|api keys?|passwords?|secrets|credentials))\b"
        ),
    ),
    (
        "assumes_a_role",
        re.compile(
            r"\b(?:(?P<a>you are now|act as|pretend to be)"
            r"|(?P<b>admin|administrator|root|developer|unrestricted))\b"
        ),
    ),
)
ALONE: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("speaks_as_system", re.compile(r"(?m)^ ?(?:system|developer)(?: message| prompt)? ?:")),
    ("control_marks", re.compile(r"<\|(?:im_start|im_end|system|endoftext)\|?>|\[/?inst\]|<<sys>>")),
    (
        "claims_approval",
        re.compile(
            r"\b(?:pre-?approved|already approved|approval (?:is )?(?:granted|not (?:needed|required)))\b"
        ),
    ),
)


class InjectionDetector:
    name = "injection"
    severity: dict[Place, Severity] = {"input": "note", "result": "gate", "output": "note"}

    def find(self, seen: DetectorInput) -> tuple[str, ...]:
        """The ways in which the text gives orders."""
        found = [name for name, words in PAIRS if any(_match_nearby_words(words, seen.plain))]
        return (*found, *(name for name, pattern in ALONE if pattern.search(seen.plain)))


def _match_nearby_words(words: re.Pattern[str], text: str) -> Iterator[bool]:
    """True for each second word that follows a first one within a sentence and `WITHIN` characters."""
    last = -WITHIN - 1
    for match in words.finditer(text):
        if match["a"]:
            last = match.end()
        elif match.start() - last <= WITHIN and not {".", "\n"} & {*text[last : match.start()]}:
            yield True


DETECTOR = InjectionDetector()
