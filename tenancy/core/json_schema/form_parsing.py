"""Parse a submitted form into a typed value and validate the value by the schema (R-UI-4, R-UI-10)."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jsonschema_rs
import orjson

from tenancy.core.json_reading import read_json
from tenancy.core.json_schema.cost import ApplicationCounter, short_verdict
from tenancy.core.json_schema.fields import (
    ABSENT,
    Kind,
    Schema,
    Sent,
    Shape,
    collect_properties,
    drop_of,
    escape_pointer_token,
    format_field_value,
    is_secret,
    normalize_newlines,
    rows_of,
    shape_of,
)
from tenancy.core.json_schema.validation import validator_of

MOST_FAULTS = 40
LONGEST_FAULT = 300
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,18})", re.ASCII)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?", re.ASCII)


class ParsedForm(NamedTuple):
    """The submitted value and its faults: sentences by the pointer of the field.

    A field that could not be parsed has a fault; the value then contains the previous content of that field.
    """

    value: Any
    faults: Mapping[str, tuple[str, ...]]


def read_form(
    schema: Schema, sent: Sent, value: Any = ABSENT, *, prefix: str = "f", secrets: tuple[str, ...] = ()
) -> ParsedForm:
    """Return the value submitted with the form of `value`, validated. Never raises."""
    reader = _Reader(schema, sent, prefix, secrets)
    found = reader.read(schema, "", value, required=True, depth=0)
    if found is ABSENT and (shape_of(schema, schema).kind == "object" or schema.get("type") == "object"):
        found = {}
    if reader.faults:
        return ParsedForm(found, reader.faults)
    if found is ABSENT:
        return ParsedForm(found, {"": ("A value is needed here.",)})
    return ParsedForm(
        found, {reader.field_at(where): said for where, said in faults_of(schema, found).items()}
    )


def faults_of(schema: Schema, value: Any) -> dict[str, tuple[str, ...]]:
    """Return the schema's errors for a value: sentences by pointer, at the missing or surplus property.

    The validator is the same one that validates tool calls and answers elsewhere.
    """
    judge = _build_validator(schema)
    if (short := short_verdict(judge, ApplicationCounter(schema), value)) is not None:
        return {"": (f"{short[0].upper()}{short[1:]}.",)} if short else {}
    found: dict[str, tuple[str, ...]] = {}
    for number, error in enumerate(judge.iter_errors(value)):
        if number >= MOST_FAULTS:
            break
        where = "".join(f"/{escape_pointer_token(str(step))}" for step in error.instance_path)
        for place, said in _format_schema_error(error):
            found[where + place] = (*found.get(where + place, ()), said)
    return found


def _build_validator(schema: Schema) -> jsonschema_rs.Validator:
    """Return a validator that does not repeat the value, which may be long or a secret, in its messages."""
    return validator_of(schema, mask="The value")


def _format_schema_error(error: jsonschema_rs.ValidationError) -> list[tuple[str, str]]:
    kind: Any = error.kind
    if kind.name == "required":
        return [(f"/{escape_pointer_token(kind.property)}", "A value is needed here.")]
    if kind.name == "additionalProperties":
        return [
            (f"/{escape_pointer_token(key)}", "The schema knows no such field.") for key in kind.unexpected
        ]
    return [("", error.message[:LONGEST_FAULT])]


class _Reader:
    """Walk the schema as the form was made, and parse each field by its kind."""

    def __init__(self, root: Schema, sent: Sent, prefix: str, secrets: tuple[str, ...]) -> None:
        self.root, self.sent, self.prefix, self.secrets = root, sent, prefix, secrets
        self.faults: dict[str, tuple[str, ...]] = {}
        self._moved: dict[str, str] = {}

    def field_at(self, pointer: str) -> str:
        """Return the pointer of the form field that a place of the value came from.

        The two differ because empty rows of a list are omitted from the value.
        """
        found = ""
        for step in pointer.split("/")[1:]:
            place = f"{found}/{step}"
            found = self._moved.get(place, place)
        return found

    def read(self, schema: object, pointer: str, value: Any, *, required: bool, depth: int) -> Any:
        """Return the value at a place, or ABSENT if there is none."""
        shape = shape_of(schema, self.root, value, depth)
        drop = drop_of(shape, value, required=required)
        if drop and f"{self.prefix}.drop:{pointer}" in self.sent:
            return None if drop == "null" else ABSENT
        if shape.kind == "object":
            return self._object(shape, pointer, value, depth)
        if shape.kind == "list":
            return self._list(shape, pointer, value, depth, required=required)
        return self._leaf(shape, pointer, value, required=required)

    def _object(self, shape: Shape, pointer: str, value: Any, depth: int) -> Any:
        held = value if isinstance(value, dict) else {}
        must = shape.schema.get("required", ())
        found = {}
        for key, part in collect_properties(shape, held):
            where, old = f"{pointer}/{escape_pointer_token(key)}", held.get(key, ABSENT)
            read = self.read(part, where, old, required=key in must, depth=depth + 1)
            if read is not ABSENT:
                found[key] = read
        return found if found or isinstance(value, dict) else value

    def _list(self, shape: Shape, pointer: str, value: Any, depth: int, *, required: bool) -> Any:
        held = value if isinstance(value, list) else []
        rows = max(len(held), rows_of(self.sent, f"{self.prefix}.rows:{pointer}"))
        found: list[Any] = []
        for place in range(rows):
            old, where = held[place] if place < len(held) else ABSENT, f"{pointer}/{place}"
            read = self.read(shape.schema["items"], where, old, required=False, depth=depth + 1)
            if read is not ABSENT:
                self._moved[f"{pointer}/{len(found)}"] = where
                found.append(read)
        if found or isinstance(value, list):
            return found
        return [] if required and value is ABSENT else value

    def _leaf(self, shape: Shape, pointer: str, value: Any, *, required: bool) -> Any:
        text = self.sent.get(f"{self.prefix}:{pointer}")
        if not isinstance(text, str) or (not text and is_secret(shape, pointer, self.secrets)):
            return value
        text = normalize_newlines(text)
        if value is not ABSENT and text == normalize_newlines(format_field_value(shape, value)):
            return value
        if not text and (value is ABSENT or shape.kind != "text"):
            return None if shape.nullable and required else ABSENT
        try:
            return _parse_field_value(shape, text, value)
        except ValueError as error:
            self.faults[pointer] = (str(error),)
            return value


def _parse_field_value(shape: Shape, text: str, before: Any) -> Any:
    """Return the value that a text represents.

    Raises: ValueError with a sentence.
    """
    if shape.kind == "choice":
        return _parse_choice(shape, text)
    if shape.kind == "decimal" and isinstance(before, int | float):
        return _parse_number(text)
    return _READERS.get(shape.kind, str)(text)


def _parse_choice(shape: Shape, text: str) -> Any:
    for choice in shape.choices:
        if choice.key == text:
            return choice.value
    raise ValueError("Choose one of the values.")


def _parse_integer(text: str) -> int:
    if _WHOLE.fullmatch(text.strip()) is None:
        raise ValueError("A whole number is needed, such as 12.")
    return int(text)


def _parse_number(text: str) -> Any:
    if _NUMBER.fullmatch(text.strip()) is None:
        raise ValueError("A number is needed, such as 12.5.")
    return orjson.loads(text.strip())


def _parse_json(text: str) -> Any:
    try:
        return read_json(text)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"This is not JSON: {error}."[:LONGEST_FAULT]) from None


_READERS: Mapping[Kind, Callable[[str], Any]] = {
    "integer": _parse_integer, "number": _parse_number, "decimal": str.strip, "json": _parse_json,
}  # fmt: skip
