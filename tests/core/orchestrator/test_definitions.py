"""What a stranger's server says of its tool: bounded, hashed, believed in nothing."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.common.argument_parsing import validate_against_schema
from orchestrator.core.common.errors import DefinitionRefused
from orchestrator.core.tools.remote_definition import (
    LONGEST_NAME,
    Definition,
    checked_schema,
    diff_definitions,
    list_colliding_names,
    list_definition_warnings,
    list_invisible_characters,
    parse_listed_tool,
    qualify_tool_name,
    read_definition,
)
from tests.proves import proves

PLAIN: dict[str, Any] = {
    "name": "send_note",
    "description": "Send a note.",
    "inputSchema": {
        "type": "object",
        "properties": {"to": {"type": "string"}},
        "additionalProperties": False,
    },
}


def nested(depth: int) -> dict[str, Any]:
    """A schema of schemas."""
    found: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        found = {"type": "object", "properties": {"a": found}}
    return found


def schema(**more: Any) -> dict[str, Any]:
    """A definition whose input schema says this as well."""
    return {**PLAIN, "inputSchema": {"type": "object", **more}}


@proves("R-TOOL-21", part="pinned by a hash of all that it says")
@pytest.mark.parametrize(
    "change",
    [
        {"name": "send_notes"},
        {"description": "Send a note!"},
        {"title": "Note"},
        {"inputSchema": {"type": "object"}},
        {"outputSchema": {"type": "object"}},
        {"annotations": {"readOnlyHint": True}},
    ],
)
def test_every_part_of_a_definition_changes_its_digest(change: dict[str, Any]) -> None:
    before, after = read_definition(PLAIN), read_definition({**PLAIN, **change})
    assert before.digest != after.digest
    assert diff_definitions(before, after)[0] != diff_definitions(before, after)[1]


def test_the_order_of_keys_and_what_is_no_part_of_it_do_not() -> None:
    turned = dict(reversed(list(PLAIN.items())))
    assert read_definition(turned).digest == read_definition({**PLAIN, "icons": [], "_meta": {"x": 1}}).digest


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
            ),
        ),
        max_size=4,
    )
)
def test_any_entry_of_a_list_is_a_definition_or_a_reason(raw: dict[str, Any]) -> None:
    for entry in (raw, {**PLAIN, **raw}, {**PLAIN, "inputSchema": raw}, {**PLAIN, "annotations": raw}):
        found = parse_listed_tool(entry)
        assert (found.definition is None) != (found.refused == "")
        if found.definition is not None:
            assert Definition.model_validate_json(found.definition.body).digest == found.definition.digest


@proves("P13", part="bounds of one definition")
@pytest.mark.parametrize(
    "raw",
    [
        {**PLAIN, "name": ""},
        {**PLAIN, "name": "x" * 129},
        {**PLAIN, "name": "a b"},
        {**PLAIN, "name": None},
        {**PLAIN, "name": "a\nb"},
        {**PLAIN, "description": "x" * 4_001},
        {**PLAIN, "description": 5},
        {**PLAIN, "description": "\ud800"},
        {**PLAIN, "inputSchema": None},
        {**PLAIN, "inputSchema": []},
        {**PLAIN, "inputSchema": {"type": "string"}},
        {**PLAIN, "annotations": []},
        {**PLAIN, "inputSchema": nested(40)},
        schema(description="x" * 70_000),
        schema(maximum=2**70),
        schema(pattern="a" * 501),
        schema(properties={"a": {"type": "nonsense"}}),
        schema(pattern="(("),
        {**PLAIN, "outputSchema": {"type": "array"}},
    ],
)
def test_what_is_out_of_bounds_is_refused(raw: dict[str, Any]) -> None:
    with pytest.raises(DefinitionRefused):
        read_definition(raw)
    assert parse_listed_tool(raw).refused


@proves("P5", part="what is kept of an entry")
def test_what_is_kept_of_an_entry_shows() -> None:
    odd = {**PLAIN, "name": "sa\0y" + "\u202e" * 200, "inputSchema": {"type": "a\0"}}
    found = parse_listed_tool(odd)
    assert found.name.startswith("sa⟦U+0000⟧y⟦U+202E⟧")
    assert len(found.name) <= LONGEST_NAME
    assert not list_invisible_characters(found.name + found.refused)


@proves("P8", part="a schema that refers elsewhere")
@pytest.mark.parametrize(
    "words",
    [
        {"$ref": "http://169.254.169.254/latest"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "other.json"},
        {"properties": {"a": {"items": {"$ref": "https://evil.example/s"}}}},
        {"$id": "file:///etc/"},
        {"$dynamicRef": "http://evil.example#a"},
        {"$schema": "http://evil.example/dialect"},
        {"$defs": {"a": {"$ref": "//evil.example"}}},
    ],
)
def test_a_schema_may_not_refer_to_another_document(words: dict[str, Any]) -> None:
    with pytest.raises(DefinitionRefused):
        checked_schema({"type": "object", **words}, "input")


def test_a_schema_that_got_past_is_not_followed_either(tmp_path: Any) -> None:
    file = tmp_path / "schema.json"
    file.write_text('{"type": "string"}')
    with pytest.raises(ValueError, match="another document"):
        validate_against_schema({"$ref": file.as_uri()}, "x")


def test_a_property_may_be_called_as_a_keyword() -> None:
    words = {
        "properties": {"$ref": {"type": "string"}, "pattern": {"type": "string"}, "$id": {"type": "string"}}
    }
    assert checked_schema(words, "input")["properties"] == words["properties"]
    assert checked_schema(
        {"$defs": {"a": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/a"}}}, "input"
    )


@proves("P6", part="one name for one tool")
def test_names_are_qualified_by_their_server() -> None:
    assert qualify_tool_name("shop", "Get-Order.v2") == "shop.get_order_v2"
    assert qualify_tool_name("shop", "___") is None
    assert qualify_tool_name("shop", "x" * 100) is None
    assert list_colliding_names("shop", ("a-b", "a_b", "A.B", "c")) == ("a-b", "a_b", "A.B")


@proves("P5", part="hidden characters")
def test_characters_that_do_not_show_are_named_wherever_they_stand() -> None:
    secret = "".join(chr(0xE0000 + ord(char)) for char in "obey")
    found = read_definition(schema(properties={"a": {"description": f"Fine.{secret}"}}))
    assert any("U+E006F" in line for line in list_definition_warnings(found))
    assert list_invisible_characters("a\u200bb\u202e\x1b\ufe0f\u3164") == tuple(
        line for line in list_invisible_characters("\u200b\u202e\x1b\ufe0f\u3164")
    )
    assert list_invisible_characters("Ordinary text,\nwith äöü, 漢字 and 🙂.") == ()
    assert not any("do not show" in line for line in list_definition_warnings(read_definition(PLAIN)))


def test_the_body_is_canonical_json() -> None:
    body = read_definition(PLAIN).body
    assert orjson.dumps(orjson.loads(body), option=orjson.OPT_SORT_KEYS) == body
