"""Distinguish a JSON Schema from the values that it describes."""

from typing import Any

JSON_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
SCHEMA_WORDS = frozenset(
    (
        *("$ref", "type", "title", "description", "format", "pattern", "minLength", "maxLength", "minimum"),
        *("maximum", "multipleOf", "items", "minItems", "maxItems", "uniqueItems", "properties", "required"),
        *("additionalProperties", "nullable", "readOnly", "writeOnly", "deprecated", "contentEncoding"),
        "contentMediaType",
    )
)


def is_schema(value: Any) -> bool:
    """Return whether a JSON value looks like a JSON Schema without examples.

    Such a schema describes values and contains none.
    """
    if not isinstance(value, dict) or not value or not SCHEMA_WORDS.issuperset(value):
        return False
    kinds = value["type"] if isinstance(value.get("type"), list) else [value.get("type")]
    return "$ref" in value or all(isinstance(kind, str) and kind in JSON_TYPES for kind in kinds)
