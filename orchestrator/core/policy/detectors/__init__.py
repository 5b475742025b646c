"""The safety detectors, each in a file that defines `DETECTOR`; new files are discovered (R-TOOL-24).

A detector scans plain text once, in time linear in its length, and names the rules that the text breaks. The
tenant decides what follows from a finding (`core/policy/rules.py`).
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Literal, NamedTuple, Protocol

Place = Literal["input", "result", "output"]
Severity = Literal["off", "note", "gate", "stop"]
PLACES: tuple[Place, ...] = ("input", "result", "output")
SEVERITIES: tuple[Severity, ...] = ("off", "note", "gate", "stop")


class DetectorInput(NamedTuple):
    """The input of a detector: the raw text, its normalized form, and the terms that the boundary denies."""

    text: str
    plain: str
    denied: tuple[str, ...]


class Detector(Protocol):
    """One detector; `severity` is the consequence of a finding at each place unless a tenant sets another."""

    name: str
    severity: Mapping[Place, Severity]

    def find(self, seen: DetectorInput) -> tuple[str, ...]:
        """Return the broken rules, each once; empty if none is broken."""
        ...


@cache
def discover_detectors() -> Mapping[str, Detector]:
    """Return every detector by name, sorted by name."""
    modules = (import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__))
    found = {module.DETECTOR.name: module.DETECTOR for module in modules if hasattr(module, "DETECTOR")}
    return dict(sorted(found.items()))
