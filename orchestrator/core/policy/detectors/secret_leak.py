"""Secrets that were on their way: taken out before anything was kept, their marks say so (R-TRACE-5)."""

import re

from orchestrator.core.policy.detectors import DetectorInput, Place, Severity

MARK = re.compile(r"\[redacted:(api_key|bearer|password|private_key|secret_field)\]")


class SecretLeakDetector:
    name = "secrets"
    severity: dict[Place, Severity] = {"input": "note", "result": "note", "output": "gate"}

    def find(self, seen: DetectorInput) -> tuple[str, ...]:
        """The kinds of secrets that stood in the text."""
        return tuple(sorted({match[1] for match in MARK.finditer(seen.text)}))


DETECTOR = SecretLeakDetector()
