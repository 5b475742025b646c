"""Making a good document faulty, and reading the faults."""

from collections.abc import Mapping
from typing import Any

import pytest

from orchestrator.core.compiler.checks.diagnostics import RULES
from orchestrator.core.compiler.compiler import compile_graph
from orchestrator.core.compiler.errors import CompileFailed
from orchestrator.core.domain.boundary import Boundary
from orchestrator.core.domain.tool_spec import ToolSpec
from tests.factories.graphs import Document
from tests.factories.tools import BOUNDARY, PROMPT, TOOLS


def faults(
    plain: Document, *, tools: Mapping[str, ToolSpec] | None = None, boundary: Boundary | None = BOUNDARY
) -> list[dict[str, Any]]:
    with pytest.raises(CompileFailed) as caught:
        compile_graph(plain, tools=TOOLS if tools is None else tools, boundary=boundary, prompts=(PROMPT,))
    found: list[dict[str, Any]] = caught.value.data["faults"]
    assert caught.value.data["count"] == len(found)
    assert all(fault["rule"] == RULES[fault["number"]] and fault["sentence"] for fault in found)
    return found


def numbers(plain: Document, **known: Any) -> list[int]:
    return sorted({fault["number"] for fault in faults(plain, **known)})


def node(plain: Document, name: str) -> Document:
    found: Document = next(one for one in plain["nodes"] if one["id"] == name)
    return found


def retarget(plain: Document, source: str, outcome: str, target: str) -> Document:
    """The last edge of the outcome leads elsewhere."""
    of_outcome = [one for one in plain["edges"] if one["source"] == source and one["outcome"] == outcome]
    of_outcome[-1]["target"] = target
    return plain


def before(plain: Document, *edges: Document) -> Document:
    """Further edges are tried first."""
    plain["edges"] = [*edges, *plain["edges"]]
    return plain
