"""Personal data: addresses, cards, accounts. Most houses work with them, so that they come in and stand in
results is no finding unless somebody asks for it; that they go out is noted (R-TOOL-24, PII leaks)."""

from orchestrator.core.policy.detectors import DetectorInput, Place, Severity
from traces.core.redaction import redact_secrets


class PersonalDataDetector:
    name = "personal"
    severity: dict[Place, Severity] = {"input": "off", "result": "off", "output": "note"}

    def find(self, seen: DetectorInput) -> tuple[str, ...]:
        """The kinds of personal data in the text."""
        _, found = redact_secrets(seen.text.encode("utf-8", "backslashreplace"), personal=True)
        return tuple(one.kind for one in found if one.kind in ("e_mail", "card", "iban"))


DETECTOR = PersonalDataDetector()
