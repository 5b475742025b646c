"""The boundary's own words: what its runs must not deal with (R-GRAPH-10)."""

from orchestrator.core.policy.detectors import DetectorInput, Place, Severity


class DeniedTopicDetector:
    name = "denied_words"
    severity: dict[Place, Severity] = {"input": "off", "result": "note", "output": "gate"}

    def find(self, seen: DetectorInput) -> tuple[str, ...]:
        """The denied words that stand in the text."""
        return tuple(word[:60] for word in seen.denied if word and word.casefold() in seen.plain)


DETECTOR = DeniedTopicDetector()
