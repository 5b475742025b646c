"""The safety detectors. Each lives in a file of its own that defines `DETECTOR`; a new file is found by
itself (R-TOOL-24).

A detector looks at plain text once, in time that grows with its length alone, and names the rules that it
finds broken. What follows is the tenant's to say (`core/policy/rules.py`).
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


class Seen(NamedTuple):
    """What a detector is given: the text as it stands, its one plain spelling, and the boundary's words."""

    text: str
    plain: str
    denied: tuple[str, ...]


class Detector(Protocol):
    """One detector. `severity` is what its finding means at each place unless a tenant says otherwise; one
    with `since` meant nothing by itself in runs of earlier cores."""

    name: str
    severity: Mapping[Place, Severity]

    def find(self, seen: Seen) -> tuple[str, ...]:
        """The rules that are broken, each once; empty where none is."""
        ...


@cache
def discover_detectors() -> Mapping[str, Detector]:
    """Every detector by its name, in the order of the names."""
    modules = (import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__))
    found = {module.DETECTOR.name: module.DETECTOR for module in modules if hasattr(module, "DETECTOR")}
    return dict(sorted(found.items()))
