"""The node kinds. Each lives in a file of its own that defines `KIND`; a new file is found by itself."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from orchestrator.core.step import NodeKind


@cache
def kinds() -> Mapping[str, NodeKind]:
    """Every node kind by its name."""
    modules = (import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__))
    return {module.KIND.kind: module.KIND for module in modules if hasattr(module, "KIND")}


def kind_of(name: str) -> NodeKind:
    """The kind called `name`. Raises KeyError for an unknown one (compilation has refused it before)."""
    return kinds()[name]
