"""Characters that do not show and can carry a text that nobody reads."""

import re

from orchestrator.core.policy.detectors import DetectorInput, Place, Severity

TAGS = re.compile("[\U000e0000-\U000e007f]")
SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4}")
UNSEEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
MANY = 8


class InvisibleCharacterDetector:
    name = "hidden"
    severity: dict[Place, Severity] = {"input": "gate", "result": "note", "output": "note"}

    def find(self, seen: DetectorInput) -> tuple[str, ...]:
        """The ways in which text is hidden."""
        found = ["tag_characters"] if TAGS.search(seen.text) else []
        found += ["variation_selectors"] if SELECTORS.search(seen.text) else []
        return (*found, "unseen_characters") if _has_many_hidden_characters(seen.text) else tuple(found)


def _has_many_hidden_characters(text: str) -> bool:
    return sum(1 for _ in UNSEEN.finditer(text)) >= MANY


DETECTOR = InvisibleCharacterDetector()
