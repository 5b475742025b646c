"""Tools that are one HTTP request: arguments stand where the template says, and nowhere else."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.common.errors import DefinitionRefused, EgressRefused
from orchestrator.core.domain.tool_spec import HttpRequest
from orchestrator.core.tools.http_tool import checked_request, operation_of, prepare_request
from orchestrator.core.tools.registration import asked_declaration, build_http_tool_spec
from tenancy.core.errors import InvalidInput
from tests.proves import proves

URL = "https://crm.example/v1/people/{id}/notes"


def request(**more: Any) -> HttpRequest:
    """A request that posts a note to a person."""
    return HttpRequest(**{"method": "POST", "url": URL, "body": "rest", **more})


@proves("R-TOOL-20", part="template")
def test_arguments_stand_in_the_path_the_query_and_the_body() -> None:
    found = prepare_request(
        request(query={"lang": "language"}), {"id": "a/b ü", "language": "de", "text": "hi"}, "k1"
    )
    assert found.url == "https://crm.example/v1/people/a%2Fb%20%C3%BC/notes?lang=de"
    assert (found.body, found.headers) == (
        b'{"text":"hi"}',
        {"content-type": "application/json", "idempotency-key": "k1"},
    )
    reading = prepare_request(request(method="GET", body="none"), {"id": 7}, "k1")
    assert (reading.url, reading.body, reading.headers) == ("https://crm.example/v1/people/7/notes", None, {})


@proves("G3", part="an argument chooses no address")
@given(st.text(min_size=1, max_size=40))
def test_no_argument_leads_out_of_its_place(text: str) -> None:
    try:
        found = prepare_request(request(body="none"), {"id": text}, "k")
    except (DefinitionRefused, UnicodeEncodeError):
        return
    parts = urlsplit(found.url)
    assert (parts.scheme, parts.netloc, parts.query, parts.fragment) == ("https", "crm.example", "", "")
    assert parts.path.startswith("/v1/people/")
    assert parts.path.endswith("/notes")
    assert parts.path.count("/") == 4


@pytest.mark.parametrize("value", ["", ".", "..", None, [], {"a": 1}])
def test_what_cannot_stand_in_a_path_is_refused(value: Any) -> None:
    with pytest.raises(DefinitionRefused):
        prepare_request(request(), {"id": value}, "k")


@pytest.mark.parametrize(
    "changes",
    [
        {"url": "https://{id}.example/x"},
        {"url": "https://crm.example/x?q={id}"},
        {"url": "https://crm.example/{other}"},
        {"url": "http://2130706433/{id}"},
        {"url": "file:///{id}"},
        {"url": "https://u:p@crm.example/{id}"},
        {"query": {"q": "other"}},
        {"method": "GET"},
        {"body": "field", "body_field": "other"},
        {"headers": {"Host": "evil.example"}},
        {"headers": {"Authorization": "Bearer x"}},
        {"headers": {"a b": "c"}},
        {"headers": {"x-a": "b\r\nc: d"}},
        {"key_header": "Cookie"},
        {"secret": "s", "secret_header": "Host"},
        {"secret": "s", "secret_form": "Bearer"},
    ],
)
def test_a_template_that_could_lead_elsewhere_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises((DefinitionRefused, EgressRefused)):
        checked_request(request(**changes), ("id", "text"))


DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "servers": [{"url": "https://crm.example/v1/"}],
    "paths": {
        "/people/{person-id}/notes": {
            "parameters": [
                {"name": "person-id", "in": "path", "required": True, "schema": {"type": "integer"}}
            ],
            "post": {
                "operationId": "addNote",
                "summary": "Add a note.",
                "parameters": [
                    {"name": "lang", "in": "query", "schema": {"type": "string"}, "description": "A tongue."}
                ],
                "requestBody": {
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Note"}}}
                },
                "responses": {
                    "201": {
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Note"}}}
                    }
                },
            },
        }
    },
    "components": {
        "schemas": {
            "Note": {
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
            }
        }
    },
}


@proves("R-TOOL-20", part="OpenAPI operation")
def test_an_operation_of_a_document_becomes_a_request_and_its_schemas() -> None:
    found = operation_of(DOCUMENT, "addNote")
    assert found.input_schema == {
        "type": "object",
        "required": ["person_id", "text"],
        "additionalProperties": False,
        "properties": {
            "person_id": {"type": "integer"},
            "lang": {"type": "string", "description": "A tongue."},
            "text": {"type": "string"},
        },
    }
    assert found.output_schema["properties"] == {"text": {"type": "string"}}
    made = prepare_request(found.request, {"person_id": 7, "lang": "de", "text": "hi"}, "k")
    assert made.url == "https://crm.example/v1/people/7/notes?lang=de"
    assert orjson.loads(made.body or b"") == {"text": "hi"}


def changed(**schemas: Any) -> dict[str, Any]:
    """The document with other schemas."""
    return {**DOCUMENT, "components": {"schemas": schemas}}


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"openapi": "2.0"},
        {**DOCUMENT, "paths": {}},
        {**DOCUMENT, "paths": []},
        changed(),
        changed(Note={"$ref": "#/components/schemas/Note"}),
        changed(Note={"$ref": "https://evil.example/n"}),
        changed(Note={"type": "object", "properties": {"lang": {"type": "string"}}}),
        changed(Note={"a": [{"b": {"$ref": "#/components/schemas/Note"}}] * 9}),
    ],
)
def test_a_document_that_is_none_or_endless_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(DefinitionRefused):
        operation_of(document, "addNote")


def with_operation(**more: Any) -> dict[str, Any]:
    """The document with other parts of its operation."""
    ((path, item),) = DOCUMENT["paths"].items()
    return {**DOCUMENT, "paths": {path: {**item, "post": {**item["post"], **more}}}}


def note(**more: Any) -> dict[str, Any]:
    """The document with other parts of its body's schema."""
    return changed(Note={**DOCUMENT["components"]["schemas"]["Note"], **more})


@proves("R-TOOL-20", part="an OpenAPI document of another shape")
@pytest.mark.parametrize(
    ("document", "field"),
    [
        (with_operation(parameters=True), "parameters"),
        (with_operation(parameters={"name": "a"}), "parameters"),
        (with_operation(requestBody={"content": -1}), "content"),
        (with_operation(requestBody={"content": "json"}), "content"),
        (with_operation(requestBody={"content": [None]}), "content"),
        (with_operation(requestBody={"content": {"application/json": "x"}}), "application/json"),
        (with_operation(responses={"200": {"content": 5}}), "content"),
        (with_operation(responses={"200": {"content": {"application/json": [1]}}}), "application/json"),
        (note(required=7), "required"),
        ({**DOCUMENT, "servers": [{"url": "https://crm.example/" + "x" * 2_000}]}, "address"),
    ],
)
def test_a_field_of_another_shape_is_named(document: dict[str, Any], field: str) -> None:
    with pytest.raises(DefinitionRefused, match=field):
        operation_of(document, "addNote")


ODD = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3)
ANYTHING = st.recursive(
    ODD,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(st.data())
def test_whatever_stands_in_a_document_it_is_read_or_refused(data: st.DataObject) -> None:
    document: dict[str, Any] = orjson.loads(orjson.dumps(DOCUMENT))
    holder: Any = document
    while True:
        place = data.draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
        if not holder[place] or not isinstance(holder[place], dict | list) or data.draw(st.booleans()):
            break
        holder = holder[place]
    holder[place] = data.draw(ANYTHING)
    with suppress(DefinitionRefused):
        assert operation_of(document, "addNote").input_schema["type"] == "object"


def declaration(**more: Any) -> dict[str, Any]:
    """A whole declaration."""
    return {
        "name": "crm.add_note",
        "description": "Add a note.",
        "risk": "network",
        "reversibility": "irreversible",
        "input_schema": {
            "type": "object",
            "properties": {"id": {"type": "string"}, "text": {"type": "string"}},
        },
        "request": {"method": "POST", "url": URL, "body": "rest", "secret": "crm"},
        **more,
    }


def test_a_declaration_becomes_a_closed_untrusted_external_version() -> None:
    spec = build_http_tool_spec(asked_declaration(declaration()))
    assert spec.remote is not None
    assert (spec.remote.origin, spec.secrets, spec.external, spec.trust) == (
        "https://crm.example",
        ("crm",),
        True,
        "untrusted",
    )
    assert spec.input_schema["additionalProperties"] is False
    assert (spec.needs_gate, spec.max_retries, spec.honours_keys) == (True, 0, False)
    assert spec.sensitive == ("/id", "/text")


@pytest.mark.parametrize(
    "more",
    [
        {"name": "Crm"},
        {"name": "crm"},
        {"risk": None},
        {"request": None},
        {"trust": "trusted"},
        {"output_schema": {"$ref": "http://evil.example"}},
        {"input_schema": {"type": "array"}},
        {"risk": "read_only"},
        {"recovery": "lookup"},
        {"approval": "never"},
        {"recovery": "read_only"},
        {"category": "memory"},
    ],
)
def test_a_declaration_that_may_not_stand_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises((InvalidInput, DefinitionRefused)):
        build_http_tool_spec(asked_declaration(declaration(**more)))
