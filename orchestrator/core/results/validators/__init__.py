"""Acceptance criteria: named validators, one a file with `NAME`, `PARAMETERS` and `holds`; found by
themselves.

A validator that can say more than no has `faults` as well: a sentence for everything that is wrong, which the
model is told when it tries again. One that looks at facts and deeds alone, never at the answer, says so with
`OF_FACTS`: it can be asked at any time.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from orchestrator.core.common.goal import Criterion
from orchestrator.core.workflow.node_protocol import NodeContext


@cache
def known_validators() -> Mapping[str, ModuleType]:
    """Every validator by name."""
    modules = (import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__))
    return {module.NAME: module for module in modules}


def unmet(view: NodeContext, text: str, criteria: Iterable[Criterion]) -> list[str]:
    """The criteria that do not hold for the draft `text`, each with what is wrong or with its parameters."""
    return [fault for criterion in criteria for fault in _faults(view, text, criterion)]


def _faults(view: NodeContext, text: str, criterion: Criterion) -> list[str]:
    module = known_validators()[criterion.validator]
    if hasattr(module, "faults"):
        found: list[str] = module.faults(view, text, criterion.parameters)
        return [f"{criterion.validator}: {fault}" for fault in found]
    held = module.holds(view, text, criterion.parameters)
    return [] if held else [f"{criterion.validator} {dict(criterion.parameters)}"]
