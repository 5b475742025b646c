"""A form keeps the types of what it was made from, and says at the field what is wrong."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenancy.core.json_schema.fields import ABSENT, shape_of
from tenancy.core.json_schema.form import Field, SchemaForm, schema_form
from tenancy.core.json_schema.form_parsing import ParsedForm, faults_of, read_form
from tests.proves import proves

REFUND: dict[str, Any] = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string", "pattern": "^A-[0-9]+$", "title": "Order Id"},
        "amount": {"type": "string", "pattern": r"^[0-9]+(\.[0-9]{2})?$"},
        "currency": {"enum": ["USD", "EUR"]},
        "copies": {"type": "integer", "minimum": 1},
        "rate": {"type": "number"},
        "urgent": {"type": "boolean"},
        "note": {"anyOf": [{"type": "string", "maxLength": 9}, {"type": "null"}], "default": None},
        "tags": {"type": "array", "items": {"type": "string", "minLength": 2}, "maxItems": 4},
        "to": {"$ref": "#/$defs/Address"},
        "extra": {"type": "object"},
    },
    "required": ["order_id", "amount"],
    "additionalProperties": False,
    "$defs": {
        "Address": {"type": "object", "properties": {"street": {"type": "string"}}, "required": ["street"]}
    },
}
FULL: dict[str, Any] = {
    "order_id": "A-1", "amount": "10.00", "currency": "USD", "copies": 3, "rate": 1.0, "urgent": True,
    "note": "", "tags": ["one", "two"], "to": {"street": "Main"}, "extra": {"a": [1, None]},
}  # fmt: skip


def fields_of(form: SchemaForm) -> dict[str, Field]:
    """Every field by its pointer."""
    found: dict[str, Field] = {}
    waiting = list(form.fields)
    while waiting:
        field = waiting.pop()
        found[field.pointer] = field
        waiting.extend(field.children)
    return found


def as_sent(form: SchemaForm) -> dict[str, str]:
    """What a browser sends of a form that nobody touched."""
    sent: dict[str, str] = {}
    for field in fields_of(form).values():
        if field.kind == "list":
            sent[field.rows_name] = str(field.rows)
        elif not field.group:
            sent[field.name] = field.text.replace("\n", "\r\n")
    return sent


def reread(schema: dict[str, Any], value: Any, **typed: str) -> ParsedForm:
    """What is read where somebody typed something over some fields (by their pointers)."""
    sent = as_sent(schema_form(schema, value))
    return read_form(schema, {**sent, **{f"f:{where}": text for where, text in typed.items()}}, value)


def typed_over(value: Any, where: str, text: str) -> ParsedForm:
    """One field typed over."""
    return reread(REFUND, value, **{where: text})


@proves("R-UI-4", part="types are kept")
def test_an_untouched_form_gives_back_the_very_value() -> None:
    read = reread(REFUND, FULL)
    assert (read.value, dict(read.faults)) == (FULL, {})
    assert type(read.value["rate"]) is float
    assert list(read.value) == list(FULL)


NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


@given(value=st.dictionaries(st.sampled_from([*REFUND["properties"], "odd", "a/b~c"]), JSON))
@proves("R-UI-4", part="types are kept of any value")
def test_whatever_stands_there_is_given_back(value: dict[str, Any]) -> None:
    assert repr(reread(REFUND, value).value) == repr(
        {key: value[key] for key in [*REFUND["properties"], *value] if key in value}
    )


@pytest.mark.parametrize(
    ("where", "text", "expected"),
    [
        ("/amount", "10", "10"),
        ("/amount", "007", "007"),
        ("/order_id", "A-2 ", "A-2 "),
        ("/copies", "4", 4),
        ("/rate", "2", 2),
        ("/rate", "1e2", 100.0),
        ("/urgent", "false", False),
        ("/currency", '"EUR"', "EUR"),
        ("/extra", '{"b": 2}', {"b": 2}),
    ],
)
def test_a_text_is_read_by_the_kind_of_its_field(where: str, text: str, expected: Any) -> None:
    found = typed_over(FULL, where, text).value[where[1:]]
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("where", "text", "said"),
    [
        ("/copies", "4.0", "A whole number"),
        ("/copies", "٣", "A whole number"),
        ("/copies", "0", "minimum of 1"),
        ("/rate", "fast", "A number"),
        ("/urgent", "yes", "Choose one"),
        ("/extra", "{", "not JSON"),
        ("/order_id", "B-1", "does not match"),
        ("/order_id", "", "does not match"),
        ("/tags/1", "x", "shorter than 2"),
    ],
)
@proves("R-UI-4", part="faults stand at their field")
def test_a_fault_stands_at_its_field_and_the_text_stays(where: str, text: str, said: str) -> None:
    sent = {**as_sent(schema_form(REFUND, FULL)), f"f:{where}": text}
    read = read_form(REFUND, sent, FULL)
    form = schema_form(REFUND, FULL, sent=sent, faults=read.faults)
    (flawed,) = form.faulty_fields
    assert (flawed.pointer, flawed.text, form.faults) == (where, text, ())
    assert said in flawed.faults[0]


def test_an_empty_field_means_nothing_where_nothing_was_and_empty_where_something_was() -> None:
    assert reread(REFUND, {"order_id": "A-1", "amount": "1"}).value == {"order_id": "A-1", "amount": "1"}
    assert typed_over({**FULL, "note": "x"}, "/note", "").value["note"] == ""
    assert "copies" not in typed_over(FULL, "/copies", "").value
    assert reread(REFUND, {**FULL, "note": None}).value["note"] is None


def test_the_box_leaves_a_place_out() -> None:
    read = read_form(REFUND, {**as_sent(schema_form(REFUND, FULL)), "f.drop:/note": "on"}, FULL)
    assert read.value == {key: FULL[key] for key in FULL if key != "note"}
    kept = read_form(REFUND, {**as_sent(schema_form(REFUND, FULL)), "f.drop:/amount": "on"}, FULL)
    assert kept.value == FULL


def test_rows_are_added_and_removed_and_a_fault_finds_its_row() -> None:
    sent = as_sent(schema_form(REFUND, FULL))
    assert sent["f.rows:/tags"] == "3"
    assert read_form(REFUND, {**sent, "f:/tags/2": "three"}, FULL).value["tags"] == ["one", "two", "three"]
    assert read_form(REFUND, {**sent, "f.drop:/tags/0": "on"}, FULL).value["tags"] == ["two"]
    short = read_form(REFUND, {**sent, "f.drop:/tags/0": "on", "f:/tags/1": "x"}, FULL)
    assert list(short.faults) == ["/tags/1"]


def test_a_sent_form_has_one_empty_row_as_long_as_the_schema_takes_more() -> None:
    sent = {**as_sent(schema_form(REFUND, FULL)), "f:/tags/2": "three"}
    assert fields_of(schema_form(REFUND, FULL, sent=sent))["/tags"].rows == 4
    assert fields_of(schema_form(REFUND, FULL, sent={**sent, "f:/tags/2": ""}))["/tags"].rows == 3
    full = {**FULL, "tags": ["aa", "bb", "cc", "dd"]}
    assert fields_of(schema_form(REFUND, full))["/tags"].rows == 4


def test_a_new_form_reads_only_what_was_typed() -> None:
    empty = as_sent(schema_form(REFUND))
    assert list(read_form(REFUND, empty).faults) == ["/order_id", "/amount"]
    read = read_form(REFUND, {**empty, "f:/order_id": "A-1", "f:/amount": "1", "f:/to/street": "Main"})
    assert (read.value, dict(read.faults)) == (
        {"order_id": "A-1", "amount": "1", "to": {"street": "Main"}}, {},
    )  # fmt: skip


def test_a_value_that_is_no_object_has_one_field() -> None:
    schema = {"enum": ["last order", "order of May"]}
    (field,) = schema_form(schema).fields
    assert (field.name, field.kind, [c.label for c in field.choices]) == (
        "f:", "choice", ["last order", "order of May"],
    )  # fmt: skip
    assert read_form(schema, {"f:": '"last order"'}).value == "last order"
    assert list(read_form(schema, {"f:": ""}).faults) == [""]


def test_a_secret_is_never_in_the_form_and_stays_unless_it_is_typed_anew() -> None:
    form = schema_form(REFUND, FULL, secrets=("/amount",))
    secret = fields_of(form)["/amount"]
    assert (secret.text, secret.original, secret.secret) == ("", "", True)
    sent = as_sent(form)
    assert read_form(REFUND, sent, FULL, secrets=("/amount",)).value == FULL
    typed = read_form(REFUND, {**sent, "f:/amount": "7"}, FULL, secrets=("/amount",))
    assert typed.value["amount"] == "7"


def test_what_is_there_beside_the_schema_is_shown_and_named_as_too_much() -> None:
    value = {**FULL, "odd": 1}
    assert fields_of(schema_form(REFUND, value))["/odd"].kind == "json"
    assert dict(reread(REFUND, value).faults) == {"/odd": ("The schema knows no such field.",)}


def test_a_text_that_no_browser_would_keep_is_asked_for_as_json() -> None:
    for text in ("a\x00b", "\x1b[31m", "a\rb"):
        assert fields_of(schema_form(REFUND, {"note": text}))["/note"].kind == "json"
        assert reread(REFUND, {"note": text}).value == {"note": text}


def test_a_schema_that_refers_to_itself_ends_in_json() -> None:
    schema: dict[str, Any] = {
        "$ref": "#/$defs/T",
        "$defs": {"T": {"type": "object", "properties": {"below": {"$ref": "#/$defs/T"}}}},
    }
    deepest = max(fields_of(schema_form(schema)), key=len)
    assert fields_of(schema_form(schema))[deepest].kind == "json"
    loop = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert schema_form(loop).fields[0].kind == "json"


@pytest.mark.parametrize(
    ("schema", "kind", "nullable"),
    [
        ({"type": ["string", "null"]}, "text", True),
        ({"anyOf": [{"type": "number"}, {"type": "string"}]}, "decimal", False),
        ({"anyOf": [{"type": "number"}, {"type": "string"}, {"type": "null"}]}, "decimal", True),
        ({"oneOf": [{"const": "a", "title": "Last"}, {"const": 1}]}, "choice", False),
        ({"allOf": [{"type": "integer"}]}, "integer", False),
        ({"oneOf": [{"type": "object"}, {"type": "array"}]}, "json", False),
        ({"type": "array"}, "json", False),
        ({}, "json", False),
        (True, "json", False),
    ],
)
def test_each_schema_has_its_kind_of_field(schema: Any, kind: str, nullable: bool) -> None:
    shape = shape_of(schema, {})
    assert (shape.kind, shape.nullable) == (kind, nullable)


def test_an_amount_stays_what_the_tool_takes() -> None:
    schema = {"type": "object", "properties": {"sum": {"anyOf": [{"type": "number"}, {"type": "string"}]}}}
    assert reread(schema, {"sum": "10.00"}, **{"/sum": "11.50"}).value == {"sum": "11.50"}
    assert reread(schema, {"sum": 10.5}, **{"/sum": "11.50"}).value == {"sum": 11.5}
    assert reread(schema, {}, **{"/sum": "11.50"}).value == {"sum": "11.50"}


def test_faults_name_every_place_once_a_sentence() -> None:
    assert faults_of(REFUND, {"order_id": "A-1", "a/b": 1, "tags": ["x"]}) == {
        "/amount": ("A value is needed here.",),
        "/a~1b": ("The schema knows no such field.",),
        "/tags/0": ("The value is shorter than 2 characters",),
    }


def test_the_ids_of_fields_are_apart() -> None:
    value = {"a_b": "1", "a-b": "1", "a b": "1", "a/b": "1", "a": "1"}
    ids = [field.id for field in fields_of(schema_form(REFUND, value)).values()]
    assert len(ids) == len(set(ids))
    assert ABSENT is not None


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("^[0-9]{1,9}([.][0-9]{1,2})?$", "a number such as 12.50"),
        (r"^-?\d+(\.\d+)?$", "a number such as 12.50"),
        ("^[0-9]+$", "digits alone"),
        ("^[a-z][a-z0-9-]{0,63}$", "small letters, digits and hyphens"),
        (r"^\d{4}-\d\d-\d\d$", "a day such as 2026-01-31"),
        ("^A-[0-9]{4}$", "written like ^A-[0-9]{4}$"),
        ("(", "written like ("),
    ],
)
def test_a_usual_form_of_writing_is_told_in_words(pattern: str, words: str) -> None:
    form = schema_form({"type": "object", "properties": {"one": {"type": "string", "pattern": pattern}}}, {})
    assert form.fields[0].hint == words
