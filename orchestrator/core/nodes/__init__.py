"""The node kinds, one a file that defines `KIND`; a new file in a folder here is registered by itself."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import walk_packages

from orchestrator.core.workflow.node_protocol import NodeKind


@cache
def discover_node_kinds() -> Mapping[str, NodeKind]:
    """Return every node kind by its name, in the order of the names."""
    modules = [import_module(found.name) for found in walk_packages(__path__, f"{__name__}.")]
    found = {module.KIND.kind: module.KIND for module in modules if hasattr(module, "KIND")}
    return dict(sorted(found.items()))


def kind_of(name: str) -> NodeKind:
    """The kind called `name`. Raises KeyError for an unknown one (compilation has refused it before)."""
    return discover_node_kinds()[name]
