"""A schema that is applied ever more often the deeper a value is bounds how deep that may be (R-SEC-11)."""

from __future__ import annotations

import time
from typing import Any

import orjson
import pytest

from orchestrator.core.common.argument_parsing import find_schema_mismatches, validate_against_schema
from tenancy.core.json_schema.cost import TOO_DEEP, ApplicationCounter, cost_fault
from tenancy.core.json_schema.form_parsing import faults_of
from tests.proves import proves

NODE = {"$ref": "#/$defs/node"}


def schema_of(node: dict[str, Any]) -> dict[str, Any]:
    """A schema of nodes."""
    return {"type": "object", "allOf": [NODE], "$defs": {"node": node}}


def nested(depth: int, **more: Any) -> dict[str, Any]:
    """A node under a node."""
    value: dict[str, Any] = dict(more)
    for _ in range(depth):
        value = {**more, "child": value}
    return value


TWICE = schema_of({"properties": {"child": {"allOf": [NODE, NODE]}}})
BY_NAME = schema_of({"properties": {"child": NODE}, "patternProperties": {"^c": NODE}})
CHAIN = {
    "type": "object",
    "properties": {"child": {"$ref": "#/$defs/d0"}},
    "$defs": {
        f"d{at}": {"properties": {"child": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2}}}
        for at in range(40)
    } | {"d40": {}},
}  # fmt: skip
LISTS = schema_of({"properties": {"child": {"items": {"anyOf": [NODE, NODE, NODE]}}}})
UNION = schema_of(
    {
        "oneOf": [
            {"type": "object", "properties": {"kind": {"const": kind}, "child": NODE}, "required": ["kind"]}
            for kind in "abcd"
        ]
    }
)
TREE = schema_of({"properties": {"left": NODE, "right": NODE, "child": NODE, "all": {"items": NODE}}})


def listed(depth: int) -> Any:
    """A node in a list in a node."""
    value: Any = {}
    for _ in range(depth):
        value = {"child": [value]}
    return value


@proves("R-SEC-11", part="schemas that take hours on a deep value")
@pytest.mark.parametrize(
    ("schema", "value"),
    [(TWICE, nested(28)), (BY_NAME, nested(28)), (CHAIN, nested(38)), (LISTS, listed(20)),
     (UNION, nested(14))],
    ids=["twice", "names", "chain", "lists", "union"],
)  # fmt: skip
def test_value_that_would_take_too_long_is_refused_at_once(schema: dict[str, Any], value: Any) -> None:
    assert cost_fault(schema) is None
    began = time.monotonic()
    refused = validate_against_schema(schema, value)
    assert refused is not None
    assert refused.detail == f"/: {TOO_DEEP}"
    assert find_schema_mismatches(schema, orjson.dumps(value)) == ("/",)
    assert time.monotonic() - began < 2


@proves("R-SEC-11", part="honest recursive schemas")
@pytest.mark.parametrize(
    ("schema", "value"), [(UNION, nested(8, kind="d")), (TREE, nested(30)), (TWICE, nested(12))]
)
def test_honest_value_of_ordinary_depth_is_taken(schema: dict[str, Any], value: Any) -> None:
    assert validate_against_schema(schema, value) is None
    assert find_schema_mismatches(schema, orjson.dumps(value)) == ()


def test_faults_of_a_union_that_fits_nowhere_are_told_in_time() -> None:
    began = time.monotonic()
    assert validate_against_schema(UNION, nested(8, kind="e")) is not None
    assert time.monotonic() - began < 2


def test_tree_does_not_grow_and_is_not_counted() -> None:
    assert not ApplicationCounter(TREE).grows
    assert ApplicationCounter(UNION).grows


def test_form_says_that_a_value_is_nested_too_deep() -> None:
    assert faults_of(UNION, nested(14)) == {"": ("Nested too deep for this schema.",)}
    assert faults_of(UNION, nested(8, kind="d")) == {}
