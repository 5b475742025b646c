"""What this machine lacks for a tool: said where tools are shown, and to the run that would call it."""

from collections.abc import Mapping

from orchestrator.core.naming import named_by
from orchestrator.core.tool import ToolSpec
from orchestrator.gateways.sandbox import bubblewrap
from orchestrator.gateways.tools.registry import particular_tools


def lacking() -> dict[str, str]:
    """The shipped tools that cannot be called on this machine, with the reason."""
    return {declared.spec.name: why for declared in particular_tools() if (why := declared.lacks())}


def unavailable(pinned: Mapping[str, ToolSpec], named: tuple[str, ...]) -> dict[str, str]:
    """Of the tools that a run is pinned to and its workflow names, those that cannot be called as the run has
    them, with the reason: not at all, or not in isolation."""
    found: dict[str, str] = {}
    for declared in particular_tools():
        name = declared.spec.name
        spec = pinned.get(name)
        if spec is None or not named_by(named, name):
            continue
        apart = spec.isolated and spec.isolation == "machine"
        if why := declared.lacks() or (bubblewrap.unavailable() if apart else ""):
            found[name] = why
    return found
