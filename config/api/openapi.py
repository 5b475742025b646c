"""OpenAPI schema of the project's own authentication, serializers and fields (R-API-1)."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import (
    OpenApiAuthenticationExtension,
    OpenApiSerializerExtension,
    OpenApiSerializerFieldExtension,
)
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter

from config.api.problems import CONTENT_TYPE
from tenancy.core.amounts import MOST, amount_schema
from tenancy.db.model_schema import SHAPES, member_schema, shapes_of
from tenancy.rest.serializer_fields import MOMENT, FormattedCharField, StrictCharField

# Python counts the ASCII separators as whitespace.
VISIBLE = r"[^\s\x1c-\x1f\x85]"

POST_ONCE = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
    OpenApiParameter.HEADER,
    description="The same key with the same body is one act for 24 hours, answered the same.",
)
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match", str, OpenApiParameter.HEADER, description="ETags that are known already."
)
ETAG = OpenApiParameter(
    "ETag",
    str,
    OpenApiParameter.HEADER,
    required=True,
    response=[200, 304],
    description="Changes with what is shown.",
)
REPLAYED = OpenApiParameter(
    "Idempotent-Replay",
    {"type": "string", "enum": ["true"]},
    OpenApiParameter.HEADER,
    response=[200, 202],
    description="Only where this key was answered before.",
)
IF_MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, description="The ETag of what was looked at: else 412."
)
PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "What was refused and why (RFC 9457).",
    "properties": {
        "type": {"type": "string", "format": "uri", "description": "Stable: urn:interlock:problem:<code>."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "remedy": {"type": "string", "description": "What to do next."},
        "instance": {"type": "string"},
        "errors": {
            "type": "array",
            "description": "One for each field that is not acceptable.",
            "items": {
                "type": "object",
                "properties": {
                    "pointer": {"type": "string", "description": "JSON pointer into the body (RFC 6901)."},
                    "code": {"type": "string"},
                    "detail": {"type": "string"},
                },
                "required": ["pointer", "code", "detail"],
            },
        },
        "data": {"type": "object", "additionalProperties": {}},
    },
    "required": ["type", "title", "status", "detail", "code"],
}
ALWAYS = {"401": "No valid key.", "403": "The key lacks the scope.", "503": "Not now; come back later."}
READING = {"400": "A parameter is not acceptable.", "406": "No such representation."}
WRITING = {
    "400": "The body is not acceptable; `errors` names the fields, with the code `not-allowed` where "
    "the form is right and a rule that no schema can say refuses it.",
    "406": "No such representation.",
    "409": "Not in this state, or the Idempotency-Key is in use.",
    "410": "Too late.",
    "412": "It was changed since; If-Match names what was looked at.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "422": "Well formed, and not possible; or the Idempotency-Key was used for another body.",
    "429": "A ceiling is reached.",
    "507": "The store is full: no new work.",
}
MISSING = {"404": "There is no such thing here."}
# Things named in the body may be missing, like those named in a path.
NAMING = frozenset({"decide_approvals", "correct_price"})


TAGGED: dict[str, tuple[OpenApiParameter, ...]] = {
    "get_run": (IF_NONE_MATCH, ETAG),
    "get_tool": (IF_NONE_MATCH, ETAG),
    "change_tool": (IF_MATCH,),
    "get_ceilings": (IF_NONE_MATCH, ETAG),
    "set_ceilings": (IF_MATCH,),
    "get_tenant": (IF_NONE_MATCH, ETAG),
    "change_tenant": (IF_MATCH,),
    "get_member_role": (IF_NONE_MATCH, ETAG),
    "set_member_limits": (IF_MATCH,),
}


class KeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """`Authorization: Bearer ilk_…`, required by every operation (R-API-1)."""

    target_class = "tenancy.rest.authentication.KeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "ilk_<id>_<secret>"}


class ExactShape(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Closes the schema of inputs that refuse unknown fields, and bounds their lists of objects (R-SEC-7)."""

    target_class = "tenancy.rest.serializer_fields.StrictSerializer"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        """Return the mapped schema, closed to additional properties."""
        mapped: dict[str, Any] = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)  # noqa: SLF001 - the way of drf-spectacular's own extensions
        if self.target.one_of:
            mapped["oneOf"] = [
                build_alternative_schema(names, self.target.one_of) for names in self.target.one_of
            ]
        for name, field in self.target.fields.items():
            if self.target.judged_by is not None and name in self.target.judged_by.model_fields:
                tighten_schema(mapped["properties"][name], member_schema(self.target.judged_by, name))
            refuse_blank(mapped["properties"][name], field)
            if (most := getattr(field, "max_length", None)) is not None and hasattr(field, "child"):
                mapped["properties"][name]["maxItems"] = most
        return mapped | {"additionalProperties": False}


class ExactAmount(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    """An amount is decimal text or a whole number, within the bound of its field."""

    target_class = "tenancy.rest.serializer_fields.Amount"
    match_subclasses = True

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        """Return the schema of both notations."""
        return amount_schema(min(MOST, int(self.target.max_value or MOST)), self.target.decimal_places)


class ExactForm(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    """States the pattern of a text with a fixed form."""

    target_class = "tenancy.rest.serializer_fields.FormattedCharField"
    match_subclasses = True

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        """Return the pattern, and the maximum length if the pattern does not contain it."""
        most = self.target.max_length
        return {"type": "string", "pattern": self.target.form} | ({} if most is None else {"maxLength": most})


class ExactMoment(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    """A moment has a time zone, and a year that is valid in every time zone."""

    target_class = "tenancy.rest.serializer_fields.Moment"

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        """Return the format and the pattern of accepted values."""
        return {"type": "string", "format": "date-time", "pattern": MOMENT}


class JudgedMember(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    """Refers from a member built as a pydantic model to the schema of that model."""

    target_class = "tenancy.rest.serializer_fields.PydanticField"

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        """Return the reference; `with_problems` adds the components."""
        JUDGED.update(shapes_of(self.target.model))
        return {"$ref": SHAPES + self.target.model.__name__}


# The components of pydantic models. They are added to the document after its enums were renamed.
JUDGED: dict[str, dict[str, Any]] = {}
TIGHTER = (
    "pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems",
)  # fmt: skip


def tighten_schema(mapped: dict[str, Any], judged: dict[str, Any]) -> None:
    """Add the model's constraints to the schema of a member, or to the items of a list."""
    mapped |= {word: judged[word] for word in TIGHTER if word in judged}
    if "items" in judged and "items" in mapped:
        tighten_schema(mapped["items"], judged["items"])


def build_alternative_schema(names: tuple[str, ...], every: tuple[tuple[str, ...], ...]) -> dict[str, Any]:
    """Return the schema of one alternative: its members are required, those of the others forbidden."""
    others = [name for one in every if one != names for name in one]
    return {"required": list(names), "not": {"anyOf": [{"required": [name]} for name in others]}}


def refuse_blank(mapped: dict[str, Any], field: Any) -> None:
    """Require a visible character in text that is trimmed and may not be empty then.

    Text with a pattern that may be empty gets the pattern's own schema.
    """
    blank = isinstance(field, StrictCharField) and field.trim_whitespace and not field.allow_blank
    if isinstance(field, FormattedCharField) and "oneOf" in mapped:
        mapped |= mapped.pop("oneOf")[0]
    elif blank and not {"pattern", "format", "enum"} & set(mapped):
        mapped["pattern"] = VISIBLE
    elif (child := getattr(field, "child", None)) is not None and "items" in mapped:
        refuse_blank(mapped["items"], child)


class Schema(AutoSchema):
    """Adds the headers shared by operations of a kind."""

    def get_override_parameters(self) -> list[Any]:
        """Return the parameters with Idempotency-Key on every POST, and with ETags and their conditions."""
        given: list[Any] = super().get_override_parameters()
        if self.method == "POST":
            given = [*given, POST_ONCE, REPLAYED]
        known = TAGGED.get(self.get_operation_id())
        return [*given, *known] if known is not None else given


def simplify_schema(node: Any) -> Any:
    """Replace "anything, or null" by "anything": as oneOf it would refuse null, which matches both."""
    if isinstance(node, dict):
        if node.get("oneOf") == [{}, {"type": "null"}]:
            return {name: simplify_schema(value) for name, value in node.items() if name != "oneOf"}
        return {name: simplify_schema(value) for name, value in node.items()}
    return [simplify_schema(item) for item in node] if isinstance(node, list) else node


def _asks_for_one(result: dict[str, Any], operation: dict[str, Any]) -> bool:
    """Return whether the body needs one of several sets of members, none of which is required by itself."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    name = content.get("schema", {}).get("$ref", "").removeprefix(SHAPES)
    return "oneOf" in result["components"]["schemas"].get(name, {})


def with_problems(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """drf-spectacular hook: document the refusals of every operation that requires a key."""
    shapes: dict[str, Any] = result["components"].setdefault("schemas", {})
    shapes |= {"Problem": PROBLEM} | JUDGED
    reference = {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for path, methods in result["paths"].items():
        for method, operation in methods.items():
            writes = method in {"post", "put", "patch"}
            names = "{" in path or operation["operationId"] in NAMING
            refusals = ALWAYS | (WRITING if writes else READING) | (MISSING if names else {})
            for status, words in refusals.items():
                operation["responses"].setdefault(status, {"description": words, "content": reference})
            operation["responses"] = dict(sorted(operation["responses"].items()))
            if writes and _asks_for_one(result, operation):
                operation["requestBody"]["required"] = True
    exact: dict[str, Any] = simplify_schema(result)
    return exact
