"""Tool definitions from remote servers: read within bounds, pinned by hash, not trusted.

Spec: P1 to P5, P13.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import jsonschema_rs
import orjson
from pydantic import Field

from orchestrator.core.common.errors import DefinitionRefused
from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.common.visible_text import does_not_show, escape_invisible_characters
from orchestrator.core.domain.tool_spec import ToolSpec
from tenancy.core.json_schema.cost import cost_fault
from tenancy.core.json_schema.validation import validator_of
from traces.core.canonical import canonical_outside, compute_digest
from traces.core.errors import NotCanonical

LONGEST_NAME = 128
LONGEST_DESCRIPTION = 4_000
LARGEST = 64 * 1024
DEEPEST = 24
LONGEST_PATTERN = 500
MOST_TOOLS = 256
MOST_PAGES = 20
# Removed tools stay known, so a server that renames its tools at each listing would fill the table.
MOST_KNOWN = 1_024

_NAME = re.compile(r"[A-Za-z0-9_.\-/]{1,128}")
_SERVER = re.compile(r"[a-z][a-z0-9_]{0,30}")
_QUALIFIED = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")
_DIALECT = re.compile(r"https?://json-schema\.org/(draft-07|draft/20(19-09|20-12))/schema#?")
_ELSEWHERE = ("$id", "id", "$dynamicRef", "$recursiveRef")
_CHILDREN = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")

TEXT_RESULT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "left_out": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["text"],
}
"""The form of a result whose tool declares none."""


class Definition(FrozenModel):
    """A tool as its server defines it. Annotations are untrusted hints: shown, hashed, never obeyed."""

    name: str
    title: str = ""
    description: str = ""
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] = Field(default_factory=dict)

    @property
    def body(self) -> bytes:
        """The canonical bytes that are hashed and stored."""
        return canonical_outside(self.model_dump(mode="python"))

    @property
    def digest(self) -> str:
        """The digest that an admission is pinned to (hex)."""
        return compute_digest("mcp-tool", self.body)


class ListedTool(FrozenModel):
    """One entry of a server's list under its original name: the definition, or why it was refused."""

    name: str
    definition: Definition | None = None
    refused: str = ""


class Listing(FrozenModel):
    """The tools that a server offered at one moment. `whole` False: only the requested tools were read."""

    tools: tuple[ListedTool, ...]
    protocol: str = ""
    server: str = ""
    whole: bool = True


class Drift(FrozenModel):
    """A tool that no longer matches its admission; `now` is None if it is gone or unreadable."""

    server: str
    tool: str
    admitted: str
    now: ListedTool | None


def read_definition(raw: Mapping[str, Any]) -> Definition:
    """Check and return a tool's definition as received.

    Raises: DefinitionRefused.
    """
    name = raw.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DefinitionRefused(detail="a tool's name is 1 to 128 letters, digits, and . _ - /")
    description, title = _read_text_field(raw, "description"), _read_text_field(raw, "title")
    annotations = raw.get("annotations")
    if annotations is None:
        annotations = {}
    if not isinstance(annotations, dict):
        raise DefinitionRefused(detail="the annotations are no object")
    output = raw.get("outputSchema")
    found = Definition(
        name=name, title=title, description=description, annotations=annotations,
        input_schema=checked_schema(raw.get("inputSchema"), "input"),
        output_schema=checked_schema(output, "output") if output is not None else None,
    )  # fmt: skip
    try:
        size = len(found.body)
    except NotCanonical as error:
        raise DefinitionRefused(detail="it holds text or numbers that cannot be kept exactly") from error
    if size > LARGEST:
        raise DefinitionRefused(detail=f"it is larger than {LARGEST} bytes")
    return found


def parse_listed_tool(raw: Mapping[str, Any]) -> ListedTool:
    """Parse one entry of a list; a fault is returned together with the name.

    Both may hold untrusted text, and are stored, so invisible characters are escaped.
    """
    given = raw.get("name")
    name = escape_invisible_characters(given[:LONGEST_NAME])[:LONGEST_NAME] if isinstance(given, str) else "?"
    try:
        return ListedTool(name=name, definition=read_definition(raw))
    except DefinitionRefused as refused:
        return ListedTool(name=name, refused=escape_invisible_characters(str(refused.data["detail"]))[:300])


def checked_schema(schema: Any, which: str, *, object_only: bool = True) -> dict[str, Any]:
    """Check that a JSON Schema refers to nothing outside itself, and return it without `$schema`.

    With `object_only`, the schema must describe an object, and the result says so. A validator would fetch a
    reference by URL, so such a reference is refused here.

    Raises: DefinitionRefused.
    """
    if not isinstance(schema, dict):
        raise DefinitionRefused(detail=f"the {which} schema is no object")
    for keywords in _iter_schema_objects(schema, which):
        _check_keywords(keywords, which)
    if object_only and schema.get("type", "object") != "object":
        raise DefinitionRefused(detail=f"the {which} schema is not one of an object")
    if len(_encode_schema(schema, which)) > LARGEST:
        raise DefinitionRefused(detail=f"the {which} schema is larger than {LARGEST} bytes")
    plain = {key: value for key, value in schema.items() if key != "$schema"}
    found = {"type": "object", **plain} if object_only else plain
    try:
        validator_of(found)
    except (ValueError, jsonschema_rs.ValidationError) as error:
        raise DefinitionRefused(detail=f"the {which} schema is none: {str(error)[:150]}") from error
    if (fault := cost_fault(found)) is not None:
        raise DefinitionRefused(detail=f"the {which} schema cannot be used: {fault}")
    return found


def qualify_tool_name(server: str, name: str) -> str | None:
    """Return the registry name of a server's tool, `server.tool`, or None if it yields no valid name."""
    own = re.sub(r"[-/.]+", "_", name.lower()).strip("_")
    found = f"{server}.{own}"
    return found if _QUALIFIED.fullmatch(found) and len(found) <= 64 else None


def is_server_name(name: str) -> bool:
    """Return whether the text is a valid name of a server."""
    return _SERVER.fullmatch(name) is not None


def list_colliding_names(server: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return a server's tool names that share one name in the registry, in order (P6)."""
    count: dict[str, int] = {}
    for name in names:
        found = qualify_tool_name(server, name) or ""
        count[found] = count.get(found, 0) + 1
    return tuple(name for name in names if count[qualify_tool_name(server, name) or ""] > 1)


def list_invisible_characters(text: str) -> tuple[str, ...]:
    """Return the invisible characters of a text, each once with its name, at most twelve (P5)."""
    seen = dict.fromkeys(char for char in text if does_not_show(char))
    return tuple(f"U+{ord(char):04X} {unicodedata.name(char, 'control')}"[:60] for char in seen)[:12]


def list_definition_warnings(definition: Definition) -> tuple[str, ...]:
    """Return warnings, as sentences, for the admin who admits a tool."""
    found: list[str] = []
    everything = orjson.loads(definition.body)
    signs = list_invisible_characters("\n".join(_iter_strings(everything)))
    if signs:
        found.append(f"It holds characters that do not show: {', '.join(signs)}.")
    if any(definition.annotations.get(hint) is True for hint in ("readOnlyHint", "idempotentHint")):
        found.append("Its server says that it is harmless. That is a hint, and nothing follows from it.")
    if definition.output_schema is None:
        found.append("It declares no form of its results; they are taken as text.")
    if definition.input_schema.get("additionalProperties", True) is not False:
        found.append("It takes arguments that it does not name.")
    return tuple(found)


def diff_definitions(before: Definition, after: Definition) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields that differ, before and after."""
    was, now = before.model_dump(mode="json"), after.model_dump(mode="json")
    names = [name for name in was if was[name] != now[name]]
    return {name: was[name] for name in names}, {name: now[name] for name in names}


def same_tool(standing: ToolSpec, kind: Literal["mcp", "http"], server: str, tool: str) -> bool:
    """Return whether a registered tool is this remote tool, or only shares its name."""
    remote = standing.remote
    return remote is not None and (remote.kind, remote.server, remote.tool) == (kind, server, tool)


def _read_text_field(raw: Mapping[str, Any], field: str) -> str:
    value = raw.get(field)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > LONGEST_DESCRIPTION:
        raise DefinitionRefused(detail=f"its {field} is no text of at most {LONGEST_DESCRIPTION} characters")
    return value


def _encode_schema(schema: Any, which: str) -> bytes:
    try:
        return canonical_outside(schema)
    except NotCanonical as error:
        raise DefinitionRefused(detail=f"the {which} schema cannot be kept exactly") from error


def _iter_schema_objects(schema: Any, which: str) -> Iterator[dict[str, Any]]:
    """Yield every object in a schema, level by level, so that hostile depth cannot exhaust the stack.

    Names of properties are not keywords.
    """
    level: list[tuple[Any, bool]] = [(schema, False)]
    depth = 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise DefinitionRefused(detail=f"the {which} schema is nested deeper than {DEEPEST}")
        below: list[tuple[Any, bool]] = []
        for item, names in level:
            if isinstance(item, list):
                below.extend((one, False) for one in item)
            elif isinstance(item, dict):
                if not names:
                    yield item
                below.extend((one, not names and key in _CHILDREN) for key, one in item.items())
        level = [(item, names) for item, names in below if isinstance(item, dict | list)]


def _check_keywords(schema: dict[str, Any], which: str) -> None:
    reference = schema.get("$ref")
    if isinstance(reference, str) and not reference.startswith("#"):
        raise DefinitionRefused(detail=f"the {which} schema refers to another document")
    if any(isinstance(schema.get(word), str) for word in _ELSEWHERE):
        raise DefinitionRefused(detail=f"the {which} schema names itself or others by address")
    dialect = schema.get("$schema")
    if dialect is not None and not (isinstance(dialect, str) and _DIALECT.fullmatch(dialect)):
        raise DefinitionRefused(detail=f"the {which} schema is of a dialect that is not known here")
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and len(pattern) > LONGEST_PATTERN:
        raise DefinitionRefused(detail=f"a pattern of the {which} schema is longer than {LONGEST_PATTERN}")


def _iter_strings(value: Any) -> Iterator[str]:
    level = [value]
    while level:
        below: list[Any] = []
        for item in level:
            if isinstance(item, str):
                yield item
            elif isinstance(item, dict):
                yield from item
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
        level = below
