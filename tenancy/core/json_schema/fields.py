"""How one place of a JSON value is asked for in a form, by its JSON Schema (R-UI-4, R-UI-10)."""

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
    """One value of a closed list: `key` is its JSON text, so that 1, "1" and true stay apart."""

    key: str
    label: str
    value: Any


class Shape(NamedTuple):
    """A place's kind, the schema that says so (references followed), whether it takes null, its choices."""

    kind: Kind
    schema: Schema
    nullable: bool = False
    choices: tuple[Choice, ...] = ()


def shape_of(schema: object, root: Schema, value: Any = ABSENT, depth: int = 0) -> Shape:
    """The shape of a place that holds `value`. What no field can hold without loss is asked for as JSON."""
    found = _build_shape(_resolve_schema(schema, root), root)
    empty = value is ABSENT or (value is None and found.nullable)
    misfit = not empty and not _can_round_trip(found, value)
    too_deep = found.kind in ("list", "object") and depth >= DEEPEST
    return found._replace(kind="json", choices=()) if misfit or too_deep else found


def key_of(value: Any) -> str:
    """A value's JSON text."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def label_of(schema: Schema, name: str) -> str:
    """What a field is called: the schema's title, else its name in words."""
    title = schema.get("title")
    if isinstance(title, str) and title.strip():
        return title
    words = name.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:] if words else name


def collect_properties(shape: Shape, held: Mapping[str, Any]) -> list[tuple[str, object]]:
    """An object's properties with their schemas: those that are named, then whatever else is held."""
    named: Mapping[str, object] = shape.schema["properties"]
    more = shape.schema.get("additionalProperties")
    other = more if isinstance(more, Mapping) else {}
    return [*named.items(), *((key, other) for key in held if key not in named)]


def format_field_value(shape: Shape, value: Any) -> str:
    """What a field says for a value."""
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
    """A form sends every line's end as two characters."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def rows_of(sent: Sent | None, name: str) -> int:
    """How many rows a list had when it was sent."""
    text = sent.get(name) if sent is not None else None
    return min(int(text), MOST_ROWS) if isinstance(text, str) and re.fullmatch("[0-9]{1,3}", text) else 0


def drop_of(shape: Shape, value: Any, *, required: bool) -> Drop:
    """What the box beside a field does: an empty text means two things where something stood."""
    if value is ABSENT or shape.kind == "choice":
        return ""
    if not required:
        return "leave_out"
    return "null" if shape.nullable and value is not None else ""


def is_secret(shape: Shape, pointer: str, secrets: tuple[str, ...]) -> bool:
    """Whether a place is never shown."""
    return pointer in secrets or shape.schema.get("writeOnly") is True


def escape_pointer_token(key: str) -> str:
    """One step of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def _resolve_schema(schema: object, root: Schema) -> Schema:
    """The schema without local references and single `allOf`s; what is no object says nothing."""
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
    """One of several: with null beside it, an amount as number or text, or constants; else JSON."""
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
    """Whether the field gives this very value back when nobody touches it."""
    if shape.kind == "json":
        return True
    if shape.kind == "choice":
        return key_of(value) in [choice.key for choice in shape.choices]
    if isinstance(value, bool) or not isinstance(value, _FITS[shape.kind]):
        return False
    if isinstance(value, str):
        return _UNKEEPABLE.search(value) is None
    return not isinstance(value, list) or len(value) <= MOST_ROWS
