"""A form made from a JSON Schema, to fill in a value without losing its types (R-UI-4, R-UI-10).

A form contains texts; a value has types. Three rules preserve the types: an unchanged field gives back
exactly the value that it was made from; every other text is parsed by its field's kind and never guessed; a
value that no field can represent without loss is edited as JSON text. A place is named by its RFC 6901
pointer, the field by prefix and pointer: `f:/order_id`. The checkbox `f.drop:/note` omits a place;
`f.rows:/tags` counts a list's rows.

    form = schema_form(schema, value)                # to show, by components/schema_form.html
    read = read_form(schema, request.POST, value)    # submitted, typed and validated (form_parsing)
    form = schema_form(schema, value, sent=request.POST, faults=read.faults)
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tenancy.core.json_schema.fields import (
    ABSENT,
    MOST_ROWS,
    Choice,
    Drop,
    Kind,
    Schema,
    Sent,
    Shape,
    collect_properties,
    drop_of,
    escape_pointer_token,
    format_field_value,
    is_secret,
    key_of,
    label_of,
    normalize_newlines,
    rows_of,
    shape_of,
)

Faults = Mapping[str, tuple[str, ...]]
LONG = 80


class Field(NamedTuple):
    """One field, or a group of fields (`children`: those of an object or a list).

    `text` is the current content, `original` the content when the form was made. `drop` is the effect of the
    checkbox next to the field, if there is one. A `secret` is never shown: left empty, its value does not
    change. `long` requests a multi-line control.
    """

    name: str
    pointer: str
    key: str
    label: str
    kind: Kind
    required: bool
    text: str = ""
    original: str = ""
    given: bool = False
    description: str = ""
    hint: str = ""
    choices: tuple[Choice, ...] = ()
    drop: Drop = ""
    drop_name: str = ""
    dropped: bool = False
    secret: bool = False
    long: bool = False
    rows_name: str = ""
    rows: int = 0
    faults: tuple[str, ...] = ()
    children: tuple["Field", ...] = ()

    @property
    def id(self) -> str:
        """The id of the field's control in the page."""
        return "field-" + re.sub(r"[^A-Za-z0-9-]", lambda found: f"_{ord(found[0]):x}", self.name)

    @property
    def group(self) -> bool:
        """Return whether the field is a group and has no control of its own."""
        return self.kind in ("object", "list")


class SchemaForm(NamedTuple):
    """The fields in reading order, and the faults that belong to no field."""

    fields: tuple[Field, ...]
    faults: tuple[str, ...] = ()

    @property
    def faulty_fields(self) -> tuple[Field, ...]:
        """The fields that have faults, in reading order."""
        return tuple(field for field in _flatten_fields(self.fields) if field.faults)


class _Maker(NamedTuple):
    """The settings that all fields of one form share."""

    root: Schema
    prefix: str
    sent: Sent | None
    faults: Faults
    secrets: tuple[str, ...]


def schema_form(
    schema: Schema,
    value: Any = ABSENT,
    *,
    sent: Sent | None = None,
    faults: Faults | None = None,
    prefix: str = "f",
    secrets: tuple[str, ...] = (),
) -> SchemaForm:
    """Build the form for `value` under `schema`; with `sent`, as the user filled it in.

    `faults` are sentences by pointer; a fault whose pointer has no field becomes a fault of the form.
    `secrets` are pointers.
    """
    given = faults or {}
    maker = _Maker(schema, prefix, sent, given, secrets)
    top = _build_field(maker, schema, "", "", value, required=True, depth=0)
    fields = top.children if top.kind == "object" else (top,)
    known = [field.pointer for field in _flatten_fields(fields)]
    lost = [said for pointer, texts in given.items() if pointer not in known for said in texts]
    return SchemaForm(fields, tuple(lost))


def _flatten_fields(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return tuple(found for field in fields for found in (field, *_flatten_fields(field.children)))


def _build_field(
    maker: _Maker, schema: object, pointer: str, key: str, value: Any, *, required: bool, depth: int
) -> Field:
    shape = shape_of(schema, maker.root, value, depth)
    name, drop_name = f"{maker.prefix}:{pointer}", f"{maker.prefix}.drop:{pointer}"
    secret = is_secret(shape, pointer, maker.secrets)
    original = "" if secret else format_field_value(shape, value)
    field = Field(
        name=name,
        pointer=pointer,
        key=key,
        label=label_of(shape.schema, key) or "Value",
        kind=shape.kind,
        required=required,
        text="" if secret else _sent_text(maker.sent, name, original),
        original=original,
        given=value is not ABSENT,
        description=_coerce_text(shape.schema.get("description")),
        hint=_format_field_hint(shape),
        choices=shape.choices,
        drop=drop_of(shape, value, required=required),
        drop_name=drop_name,
        dropped=maker.sent is not None and drop_name in maker.sent,
        secret=secret,
        faults=maker.faults.get(pointer, ()),
    )
    if shape.kind == "object":
        return field._replace(children=_build_member_fields(maker, shape, pointer, value, depth))
    if shape.kind == "list":
        return _with_row_fields(maker, field, shape, value, depth)
    return field._replace(long=_is_long(shape, field.text))


def _build_member_fields(
    maker: _Maker, shape: Shape, pointer: str, value: Any, depth: int
) -> tuple[Field, ...]:
    """Build a field for every property that the schema names, then for every other property of the value."""
    held = value if isinstance(value, dict) else {}
    must = shape.schema.get("required", ())
    return tuple(
        _build_field(
            maker,
            part,
            f"{pointer}/{escape_pointer_token(key)}",
            key,
            held.get(key, ABSENT),
            required=key in must,
            depth=depth + 1,
        )
        for key, part in collect_properties(shape, held)
    )


def _with_row_fields(maker: _Maker, field: Field, shape: Shape, value: Any, depth: int) -> Field:
    """Add a field for each row, and an empty row for a new item as long as the schema allows more."""
    held = value if isinstance(value, list) else []
    rows_name = f"{maker.prefix}.rows:{field.pointer}"
    rows = _rows_shown(maker.sent, field, shape, max(len(held), rows_of(maker.sent, rows_name)))
    children = tuple(
        _build_field(
            maker,
            shape.schema["items"],
            f"{field.pointer}/{place}",
            str(place),
            held[place] if place < len(held) else ABSENT,
            required=False,
            depth=depth + 1,
        )._replace(label=f"{field.label} {place + 1}")
        for place in range(rows)
    )
    return field._replace(children=children, rows_name=rows_name, rows=rows)


def _rows_shown(sent: Sent | None, field: Field, shape: Shape, rows: int) -> int:
    """Return the number of rows to show.

    An empty row is added unless the last submitted row is empty already or the maximum is reached.
    """
    start = f"{field.name}/{rows - 1}"
    if sent is not None and rows:
        last = [sent.get(name) for name in sent if name == start or name.startswith(f"{start}/")]
        if last and not any(last):
            return rows
    most = min(_coerce_integer(shape.schema.get("maxItems"), MOST_ROWS), MOST_ROWS)
    return max(rows, min(rows + 1, most))


# -- texts of one field


def _sent_text(sent: Sent | None, name: str, original: str) -> str:
    text = sent.get(name) if sent is not None else None
    return normalize_newlines(text) if isinstance(text, str) else original


def _format_field_hint(shape: Shape) -> str:
    """Return the limits of a field in words."""
    schema = shape.schema
    said: list[str] = []
    if shape.kind == "text":
        said += _format_bounds(schema.get("minLength"), schema.get("maxLength"), "characters")
    elif shape.kind == "list":
        said += _format_bounds(schema.get("minItems"), schema.get("maxItems"), "rows")
    else:
        said += _format_bounds(schema.get("minimum"), schema.get("maximum"), "")
        said += [f"more than {schema['exclusiveMinimum']}"] if "exclusiveMinimum" in schema else []
        said += [f"less than {schema['exclusiveMaximum']}"] if "exclusiveMaximum" in schema else []
    said += [_form_of(shape, schema["pattern"])] if isinstance(schema.get("pattern"), str) else []
    said += [f"a {schema['format']}"] if isinstance(schema.get("format"), str) else []
    if schema.get("default") is not None and shape.kind != "object":
        said.append(f"left out it is {key_of(schema['default'])}")
    said += ["as JSON"] if shape.kind == "json" else []
    return ", ".join(said)


# Usual text formats: matching examples, other examples, and a description to show instead of a pattern.
FORMS: Final = (
    (("12.50", "7"), ("x", "1,000"), "a number such as 12.50"),
    (("12", "7"), ("x", "12.5"), "digits alone"),
    (("payments-api", "a"), ("A b", "x_y"), "small letters, digits and hyphens"),
    (("payments_api", "a"), ("A b", "x-y"), "small letters, digits and underscores"),
    (("2026-01-31",), ("x", "31.1.2026"), "a day such as 2026-01-31"),
)
LONGEST_PATTERN: Final = 200


def _form_of(shape: Shape, pattern: str) -> str:
    """Return how a text must be written, in words if the pattern is one of the usual formats."""
    if shape.kind == "decimal":
        return FORMS[0][2]
    try:
        form = re.compile(pattern) if len(pattern) <= LONGEST_PATTERN else None
    except re.error:
        form = None
    if form is not None:
        for takes, refuses, words in FORMS:
            if all(form.search(one) for one in takes) and not any(form.search(one) for one in refuses):
                return words
    return f"written like {pattern}"


def _format_bounds(least: Any, most: Any, what: str) -> list[str]:
    low, high = isinstance(least, int | float), isinstance(most, int | float)
    if low and high:
        return [f"{least} to {most} {what}".rstrip()]
    if low:
        return [f"at least {least} {what}".rstrip()]
    return [f"at most {most} {what}".rstrip()] if high else []


def _is_long(shape: Shape, text: str) -> bool:
    if shape.kind == "json":
        return True
    most = _coerce_integer(shape.schema.get("maxLength"), 0)
    return shape.kind == "text" and ("\n" in text or len(text) > LONG or most > 4 * LONG)


def _coerce_integer(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise


def _coerce_text(value: Any) -> str:
    return value if isinstance(value, str) else ""
