"""Form fields for the places of a JSON value, chosen by its JSON Schema (R-UI-4, R-UI-10)."""

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import orjson

Kind = Literal["text", "integer", "number", "decimal", "choice", "list", "object", "json"]
Schema = Mapping[str, Any]
Sent = Mapping[str, Any]
Drop = Literal["", "leave_out", "null"]
ABSENT: Any = type("Absent", (), {"__repr__": lambda _: "ABSENT", "__bool__": lambda _: False})()
"""What stands where no value is; `None` is JSON's null."""
DEEPEST = 4
MOST_ROWS = 50
_HOPS = 8
# A form cannot carry these: a browser drops or rewrites them.
_UNKEEPABLE = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]")
_SIMPLE: Mapping[str, Kind] = {
    "string": "text", "integer": "integer", "number": "number", "boolean": "choice", "array": "list",
    "object": "object",
}  # fmt: skip
_FITS: Mapping[Kind, tuple[type, ...]] = {
    "text": (str,), "integer": (int,), "number": (int, float), "decimal": (str, int, float), "list": (list,),
    "object": (dict,),
}  # fmt: skip


class Choice(NamedTuple):
    """One value of a closed list: `key` is its JSON text, so that 1, "1" and true stay distinct."""

    key: str
    label: str
    value: Any


class Shape(NamedTuple):
    """A field's kind, its schema with references resolved, whether it accepts null, and its choices."""

    kind: Kind
    schema: Schema
    nullable: bool = False
    choices: tuple[Choice, ...] = ()


def shape_of(schema: object, root: Schema, value: Any = ABSENT, depth: int = 0) -> Shape:
    """Return the shape of a place that holds `value`.

    A value that no field can represent without loss gets a JSON text field.
    """
    found = _build_shape(_resolve_schema(schema, root), root)
    empty = value is ABSENT or (value is None and found.nullable)
    misfit = not empty and not _can_round_trip(found, value)
    too_deep = found.kind in ("list", "object") and depth >= DEEPEST
    return found._replace(kind="json", choices=()) if misfit or too_deep else found


def key_of(value: Any) -> str:
    """Return a value's JSON text."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def label_of(schema: Schema, name: str) -> str:
    """Return the label of a field: the schema's title, else its name in words."""
    title = schema.get("title")
    if isinstance(title, str) and title.strip():
        return title
    words = name.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:] if words else name


def collect_properties(shape: Shape, held: Mapping[str, Any]) -> list[tuple[str, object]]:
    """Return an object's properties with their schemas: first the named ones, then all other present ones."""
    named: Mapping[str, object] = shape.schema["properties"]
    more = shape.schema.get("additionalProperties")
    other = more if isinstance(more, Mapping) else {}
    return [*named.items(), *((key, other) for key in held if key not in named)]


def format_field_value(shape: Shape, value: Any) -> str:
    """Return the text that a field shows for a value."""
    if value is ABSENT:
        return ""
    if shape.kind == "choice":
        return key_of(value)
    if shape.kind == "json":
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    if value is None or shape.kind in ("list", "object"):
        return ""
    return value if isinstance(value, str) else key_of(value)


def normalize_newlines(text: str) -> str:
    """Replace each CRLF or CR by LF: a form submits every line end as two characters."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def rows_of(sent: Sent | None, name: str) -> int:
    """Return how many rows a list had when the form was submitted."""
    text = sent.get(name) if sent is not None else None
    return min(int(text), MOST_ROWS) if isinstance(text, str) and re.fullmatch("[0-9]{1,3}", text) else 0


def drop_of(shape: Shape, value: Any, *, required: bool) -> Drop:
    """Return the effect of the checkbox next to a field.

    The checkbox exists because an empty text is ambiguous where the value was not empty before.
    """
    if value is ABSENT or shape.kind == "choice":
        return ""
    if not required:
        return "leave_out"
    return "null" if shape.nullable and value is not None else ""


def is_secret(shape: Shape, pointer: str, secrets: tuple[str, ...]) -> bool:
    """Return whether a value must never be shown."""
    return pointer in secrets or shape.schema.get("writeOnly") is True


def escape_pointer_token(key: str) -> str:
    """Escape one step of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def _resolve_schema(schema: object, root: Schema) -> Schema:
    """Resolve local references and single `allOf`s; a schema that is not an object becomes an empty one."""
    for _ in range(_HOPS):
        if not isinstance(schema, Mapping):
            return {}
        reference, parts = schema.get("$ref"), schema.get("allOf")
        if isinstance(reference, str) and reference.startswith("#/"):
            schema = {**_without_keyword(schema, "$ref"), **_resolve_reference(root, reference)}
        elif isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], Mapping):
            schema = {**_without_keyword(schema, "allOf"), **parts[0]}
        else:
            return schema
    return {}


def _without_keyword(schema: Schema, name: str) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != name}


def _resolve_reference(root: Schema, reference: str) -> Schema:
    found: Any = root
    for step in reference[2:].split("/"):
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _build_shape(schema: Schema, root: Schema) -> Shape:
    if "const" in schema or isinstance(schema.get("enum"), list):
        return _build_choice_shape(schema, [schema["const"]] if "const" in schema else schema["enum"])
    either = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(either, list):
        return _build_union_shape(schema, [_resolve_schema(part, root) for part in either], root)
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    others = [kind for kind in kinds if kind != "null"]
    if sorted(map(str, others)) == ["number", "string"]:
        return Shape("decimal", schema, len(others) < len(kinds))
    if len(others) != 1 or others[0] not in _SIMPLE:
        return Shape("json", schema, "null" in kinds)
    return _of_type(str(others[0]), schema, nullable=len(others) < len(kinds))


def _of_type(name: str, schema: Schema, *, nullable: bool) -> Shape:
    if name == "boolean":
        return _build_choice_shape(schema, [True, False, *([None] if nullable else [])])
    if name == "object" and not isinstance(schema.get("properties"), Mapping):
        return Shape("json", schema, nullable)
    if name == "array" and not isinstance(schema.get("items"), Mapping):
        return Shape("json", schema, nullable)
    return Shape(_SIMPLE[name], schema, nullable)


def _build_union_shape(schema: Schema, parts: list[Schema], root: Schema) -> Shape:
    """Return the shape of a union of schemas.

    Supported are one schema with null, an amount as number or text, and constants; everything else is JSON.
    """
    others = [part for part in parts if part.get("type") != "null"]
    nullable = len(others) < len(parts)
    words = {key: schema[key] for key in ("title", "description", "default") if key in schema}
    if len(others) == 1:
        inner = _build_shape(others[0], root)
        null = (Choice("null", "None", None),) if nullable and inner.kind == "choice" else ()
        return Shape(
            inner.kind, {**inner.schema, **words}, nullable or inner.nullable, (*inner.choices, *null)
        )
    if others and all("const" in part for part in others):
        nothing = [None] if nullable else []
        titles = {key_of(part["const"]): part.get("title") for part in others}
        closed = _build_choice_shape(schema, [*(part["const"] for part in others), *nothing])
        named = tuple(one._replace(label=titles.get(one.key) or one.label) for one in closed.choices)
        return closed._replace(choices=named)
    if sorted(str(part.get("type")) for part in others) == ["number", "string"]:
        return Shape("decimal", {**schema, **words}, nullable)
    return Shape("json", schema, nullable)


def _build_choice_shape(schema: Schema, values: list[Any]) -> Shape:
    choices = tuple(Choice(key_of(value), _format_choice_label(value), value) for value in values)
    return Shape("choice", schema, None in values, choices)


def _format_choice_label(value: Any) -> str:
    names = {"true": "Yes", "false": "No", "null": "None"}
    return value if isinstance(value, str) else names.get(key_of(value), key_of(value))


def _can_round_trip(shape: Shape, value: Any) -> bool:
    """Return whether an unchanged field gives back exactly this value."""
    if shape.kind == "json":
        return True
    if shape.kind == "choice":
        return key_of(value) in [choice.key for choice in shape.choices]
    if isinstance(value, bool) or not isinstance(value, _FITS[shape.kind]):
        return False
    if isinstance(value, str):
        return _UNKEEPABLE.search(value) is None
    return not isinstance(value, list) or len(value) <= MOST_ROWS
