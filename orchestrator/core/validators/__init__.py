"""Acceptance criteria: named validators, one a file with `NAME`, `PARAMETERS` and `holds`; found by
themselves."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from orchestrator.core.step import View


@cache
def known_validators() -> Mapping[str, ModuleType]:
    """Every validator by name."""
    modules = (import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__))
    return {module.NAME: module for module in modules}


def unmet(view: View, text: str) -> list[str]:
    """The goal's criteria that do not hold for the draft `text`, each with its parameters."""
    known = known_validators()
    return [
        f"{criterion.validator} {dict(criterion.parameters)}"
        for criterion in view.manifest.goal.acceptance
        if not known[criterion.validator].holds(view, text, criterion.parameters)
    ]
