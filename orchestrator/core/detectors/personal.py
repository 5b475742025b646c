"""Personal data: addresses, cards, accounts. Most houses work with them, so only who asks for it is told."""

from orchestrator.core.detectors import Place, Seen, Severity
from traces.core.redaction import redact


class Personal:
    name = "personal"
    severity: dict[Place, Severity] = {"input": "off", "result": "off", "output": "off"}

    def find(self, seen: Seen) -> tuple[str, ...]:
        """The kinds of personal data in the text."""
        _, found = redact(seen.text.encode("utf-8", "backslashreplace"), personal=True)
        return tuple(one.kind for one in found if one.kind in ("e_mail", "card", "iban"))


DETECTOR = Personal()
