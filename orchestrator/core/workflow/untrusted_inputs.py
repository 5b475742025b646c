"""Inputs that a workflow declares untrusted: a forwarded mail, a customer's own words (R-TOOL-16, R-TOOL-17).

All else that a task comes with is trusted: a signed-in person typed it, or a program gave it as trusted
input. An untrusted input names nothing, and counts as read from outside before the first call.
"""

from collections.abc import Mapping
from typing import Any, Final

from orchestrator.core.workflow.goal_inputs import merge_goal_inputs
from orchestrator.core.workflow.node_protocol import NodeContext

MARK: Final = "x-untrusted"


def untrusted_names(input_schema: Mapping[str, Any]) -> frozenset[str]:
    """The inputs that the schema marks with `x-untrusted: true`, at its top level."""
    properties = input_schema.get("properties")
    if not isinstance(properties, Mapping):
        return frozenset()
    return frozenset(
        name for name, part in properties.items() if isinstance(part, Mapping) and part.get(MARK) is True
    )


def split_inputs(view: NodeContext) -> tuple[dict[str, Any], dict[str, Any]]:
    """The run's inputs with the submitter's answers, the trusted and the untrusted ones."""
    given = merge_goal_inputs(view.manifest.goal, view.state, view.desk)
    marked = _get_untrusted_names(view)
    if not marked:
        return given, {}
    trusted = {name: value for name, value in given.items() if name not in marked}
    return trusted, {name: value for name, value in given.items() if name in marked}


def has_untrusted_inputs(view: NodeContext) -> bool:
    """True if the run was given an untrusted input that is not empty."""
    return bool(_get_untrusted_names(view)) and any(split_inputs(view)[1].values())


def is_untrusted_input(view: NodeContext, pointer: str) -> bool:
    """True if a pointer into the inputs leads into an untrusted one."""
    name = pointer[1:].partition("/")[0].replace("~1", "/").replace("~0", "~")
    return name in _get_untrusted_names(view)


def _get_untrusted_names(view: NodeContext) -> frozenset[str]:
    return untrusted_names(view.graph.spec.input_schema)
