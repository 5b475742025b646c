"""The form of an answer that workflow and goal ask for together."""

from __future__ import annotations

from orchestrator.core.common.goal import Goal
from orchestrator.core.compiler.compiler import compile_graph
from orchestrator.core.domain.graph import answer_schema
from tenancy.core.json_schema.validation import schema_fault
from tests.factories.graphs import document
from tests.factories.tools import BOUNDARY, PROMPT, TOOLS
from tests.proves import proves

OWN = {"type": "object"}


@proves("R-SEC-11", part="the form of the answer")
def test_schema_that_only_stands_alone_is_not_usable_beside_that_of_the_workflow() -> None:
    spec = compile_graph(
        document("tool") | {"output_schema": OWN}, tools=TOOLS, boundary=BOUNDARY, prompts=(PROMPT,)
    ).spec
    asked = {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}
    assert schema_fault(asked) is None
    together = answer_schema(spec, Goal(objective="x", output_schema=asked))
    assert together == {"allOf": [OWN, asked]}
    assert schema_fault(together) is not None
