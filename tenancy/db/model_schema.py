"""JSON Schema of a pydantic model that validates a request body (R-API-1).

The OpenAPI document and the validation use the same schema, so that the two cannot differ.
"""

from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Annotated, Any, NamedTuple, cast

import jsonschema_rs
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from tenancy.core.amounts import MOST, amount_schema
from tenancy.core.json_schema.validation import validator_of

SHAPES = "#/components/schemas/"
SCHEMA = "https://json-schema.org/draft/2020-12/schema"
MOST_FAULTS = 50


class BodySchema(GenerateJsonSchema):
    """Schema generator that represents a decimal as an amount, as everywhere in the API."""

    def decimal_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of decimal text or a whole number, up to the bound of the field."""
        return amount_schema(int(schema.get("le", MOST)))


@cache
def shapes_of(model: type[BaseModel]) -> dict[str, dict[str, Any]]:
    """Return the schema components of a model and of the models within it, by their names."""
    schema = model.model_json_schema(schema_generator=BodySchema, ref_template=SHAPES + "{model}")
    within: dict[str, dict[str, Any]] = schema.pop("$defs", {})
    return {
        name: _without_titles_and_defaults(shape)
        for name, shape in {**within, model.__name__: schema}.items()
    }


@cache
def member_schema(model: type[BaseModel], name: str) -> dict[str, Any]:
    """Return the schema of one member of a model, without the null that makes the member optional."""
    member = model.model_fields[name]
    form: Any = Annotated[member.annotation, member]
    adapter: TypeAdapter[Any] = TypeAdapter(form)
    schema: dict[str, Any] = _without_titles_and_defaults(adapter.json_schema(schema_generator=BodySchema))
    ways: list[dict[str, Any]] = [way for way in schema.get("anyOf", ()) if way != {"type": "null"}]
    return ways[0] if len(ways) == 1 else schema


class Fault(NamedTuple):
    """An error at a place within a value."""

    path: tuple[str | int, ...]
    code: str
    detail: str


def faults_in(model: type[BaseModel], given: Any) -> Iterator[Fault]:
    """Return the first fifty errors of a value that a model is to be made of."""
    return _iterate_faults(_build_validator(model), given)


def member_fault(model: type[BaseModel], name: str, given: Any) -> str | None:
    """Return the first error of one member as a sentence, or None if the member is valid."""
    return next((fault.detail for fault in _iterate_faults(_member_judge(model, name), given)), None)


def _iterate_faults(judge: jsonschema_rs.Validator, given: Any) -> Iterator[Fault]:
    return islice(
        (fault for error in judge.iter_errors(given) for fault in _convert_error_to_faults(error)),
        MOST_FAULTS,
    )


def _convert_error_to_faults(error: jsonschema_rs.ValidationError) -> Iterator[Fault]:
    # The error kinds have attributes that are missing in the package's type stubs.
    path, kind = tuple(error.instance_path), cast("Any", error.kind)
    if kind.name == "required":
        yield Fault((*path, kind.property), "required", "This field is required.")
    elif kind.name == "additionalProperties":
        for name in kind.unexpected:
            yield Fault((*path, name[:100]), "unknown", "This field is not known.")
    else:
        yield Fault(path, "invalid", error.message[:300])


@cache
def _build_validator(model: type[BaseModel]) -> jsonschema_rs.Validator:
    shapes = shapes_of(model)
    return validator_of(
        {"$schema": SCHEMA, "$ref": SHAPES + model.__name__, "components": {"schemas": shapes}},
        mask="the value",
    )


@cache
def _member_judge(model: type[BaseModel], name: str) -> jsonschema_rs.Validator:
    return validator_of({"$schema": SCHEMA, **member_schema(model, name)}, mask="the value")


def _without_titles_and_defaults(node: Any) -> Any:
    """Return a schema without titles and defaults.

    Titles are only derived from names, and defaults are described in prose.
    """
    if isinstance(node, list):
        return [_without_titles_and_defaults(one) for one in node]
    if not isinstance(node, dict):
        return node
    told = {
        name: _without_titles_and_defaults(value)
        for name, value in node.items()
        if name not in ("title", "default")
    }
    if isinstance(node.get("properties"), dict):
        told["properties"] = {
            name: _without_titles_and_defaults(value) for name, value in node["properties"].items()
        }
    return told
