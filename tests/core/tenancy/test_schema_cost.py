"""A schema that would keep the process busy for hours is refused; honest ones are not (R-SEC-11)."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

from orchestrator.core.common.errors import DefinitionRefused
from orchestrator.core.tools.remote_definition import checked_schema
from tenancy.core.json_schema.cost import cost_fault
from tenancy.core.json_schema.validation import schema_fault, validator_of
from tests.proves import proves


def doubling(steps: int, *, word: str = "allOf", reference: str = "#/$defs/d{}") -> dict[str, Any]:
    """Each step is applied twice by the one before it."""
    parts: dict[str, Any] = {
        f"d{at}": {"$anchor": f"d{at}", word: [{"$ref": reference.format(at + 1)}] * 2} for at in range(steps)
    }
    return {"$defs": {**parts, f"d{steps}": {"$anchor": f"d{steps}", "type": "integer"}}}


def applied(steps: int, **how: str) -> dict[str, Any]:
    """The same, applied to a member."""
    first = how.get("reference", "#/$defs/d{}").format(0)
    return {"type": "object", "properties": {"a": {"$ref": first}}, **doubling(steps, **how)}


LOOP = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/a"}},
    "$defs": {
        name: {"anyOf": [{"$ref": f"#/$defs/{other}"} for other in "abcdefgh" if other != name]}
        for name in "abcdefgh"
    },
}
CHAIN = {"$defs": {f"d{at}": {"$ref": f"#/$defs/d{at + 1}"} for at in range(5_000)},
         "type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}}  # fmt: skip


@proves("R-SEC-11", part="schemas that take hours")
@pytest.mark.parametrize(
    "schema",
    [
        applied(40),
        applied(40, word="oneOf"),
        applied(40, reference="#d{}"),
        {"$id": "https://here.example/", **applied(40, reference="https://here.example/#/$defs/d{}")},
        LOOP,
        CHAIN,
        {"type": "object", "allOf": [{"$ref": "#"}]},
    ],
    ids=["allOf", "oneOf", "anchors", "addresses", "loop", "chain", "itself"],
)
def test_schema_that_is_applied_without_end_is_refused(schema: dict[str, Any]) -> None:
    before, began = sys.getrecursionlimit(), time.monotonic()
    assert schema_fault(schema) is not None
    with pytest.raises(DefinitionRefused):
        checked_schema(schema, "input")
    assert time.monotonic() - began < 2
    assert sys.getrecursionlimit() == before


UNDER = {"properties": {"under": {"$ref": "#/$defs/node"}}}
TREE = {
    "type": "object",
    "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "all": {"items": {"$ref": "#/$defs/node"}}},
    "$defs": {"node": {"oneOf": [{"$ref": "#/$defs/leaf"}, UNDER]}, "leaf": {"const": {"$ref": "#"}}},
}
NAMES = {
    "type": "object",
    "properties": {"not": {"$ref": "#"}, "allOf": {"$ref": "#"}, "$id": {"type": "string"}},
}
META = {"type": "object", "properties": {"a": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}}


@proves("R-SEC-11", part="honest schemas")
@pytest.mark.parametrize("schema", [TREE, NAMES, META, applied(8)], ids=["tree", "names", "meta", "shared"])
def test_schema_that_comes_back_within_the_value_is_taken(schema: dict[str, Any]) -> None:
    assert schema_fault(schema) is None
    assert cost_fault(schema) is None
    assert validator_of(schema).is_valid({"a": 1}) in {True, False}
