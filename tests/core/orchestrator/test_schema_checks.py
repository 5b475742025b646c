"""A workflow's schemas are judged when it is compiled (R-SEC-11)."""

import pytest

from orchestrator.core.compiler.compiler import compile_graph
from tests.core.orchestrator.faulty import numbers
from tests.factories.graphs import document
from tests.factories.tools import BOUNDARY, PROMPT, TOOLS
from tests.proves import proves


@proves("R-SEC-11", part="schemas of a workflow")
@pytest.mark.parametrize("name", ["input_schema", "output_schema"])
@pytest.mark.parametrize(
    "schema", [{"type": "nonsense"}, {"pattern": "("}, {"$ref": "https://schemas.example/a"}]
)
def test_30_schema_that_cannot_be_used_is_a_fault(name: str, schema: dict[str, str]) -> None:
    assert numbers(document("tool") | {name: schema}) == [30]


def test_30_schema_that_refers_into_itself_is_none() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"type": "string"}},
    }
    plain = document("tool") | {"input_schema": schema, "output_schema": schema}
    compile_graph(plain, tools=TOOLS, boundary=BOUNDARY, prompts=(PROMPT,))
