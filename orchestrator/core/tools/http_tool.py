"""A tool that is one HTTP request, declared as a template or as an OpenAPI operation (R-TOOL-20)."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import orjson

from orchestrator.core.common.errors import DefinitionRefused
from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.domain.tool_spec import HttpRequest
from orchestrator.core.tools.egress_policy import Target, target_of

METHODS = ("get", "post", "put", "patch", "delete")
DEEPEST = 24
MOST_NODES = 20_000
LONGEST_URL = 2_000
_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]{0,63})\}")
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
# Headers that only the transport and the secret may set.
_OWN_HEADERS = (
    "host", "content-length", "content-type", "transfer-encoding", "connection", "cookie", "authorization",
    "proxy-authorization", "accept-encoding", "upgrade", "te", "trailer", "expect",
)  # fmt: skip


class PreparedRequest(FrozenModel):
    """A request ready to be sent, except for its secret."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes | None = None


class Operation(FrozenModel):
    """The tool that an OpenAPI operation describes."""

    request: HttpRequest
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]


def checked_request(request: HttpRequest, arguments: tuple[str, ...]) -> Target:
    """Check a template and return the one origin that it leads to.

    Placeholders are in the path alone, and each is one of `arguments`: an argument never chooses a host.

    Raises: DefinitionRefused, EgressRefused.
    """
    bare = _PLACE.sub("x", request.url)
    target = target_of(bare)
    parts = urlsplit(request.url)
    if _PLACE.search(parts.netloc) or _PLACE.search(parts.query) or "?" in request.url:
        raise DefinitionRefused(
            detail="placeholders stand in the path; a query is declared by its parameters"
        )
    used = (*_PLACE.findall(parts.path), *request.query.values())
    if request.body == "field":
        used = (*used, request.body_field)
    for name in used:
        if name not in arguments:
            raise DefinitionRefused(detail=f"the template uses {name[:64]}, which is no argument")
    if request.method == "GET" and request.body != "none":
        raise DefinitionRefused(detail="a GET has no body")
    _check_headers(request)
    return target


def prepare_request(request: HttpRequest, arguments: Mapping[str, Any], key: str) -> PreparedRequest:
    """Build the request for these arguments.

    Raises: DefinitionRefused if an argument does not fit its place.
    """
    path_names = _PLACE.findall(request.url)
    url = _PLACE.sub(lambda found: _encode_path_segment(found[1], arguments), request.url)
    query = [(name, _format_scalar(argument, arguments[argument]))
             for name, argument in request.query.items() if arguments.get(argument) is not None]  # fmt: skip
    headers = dict(request.headers)
    body: bytes | None = None
    if request.body == "field":
        body = orjson.dumps(arguments.get(request.body_field))
    elif request.body == "rest":
        used = {*path_names, *request.query.values()}
        body = orjson.dumps({name: value for name, value in arguments.items() if name not in used})
    if body is not None:
        headers["content-type"] = "application/json"
    if request.method != "GET" and request.key_header:
        headers[request.key_header.lower()] = key
    return PreparedRequest(
        method=request.method, url=f"{url}?{urlencode(query)}" if query else url, headers=headers, body=body
    )


def operation_of(document: Mapping[str, Any], operation_id: str, *, server: str = "") -> Operation:
    """Build the tool that an operation of an OpenAPI 3 document describes.

    The parameters of path and query and the members of a JSON body become the arguments. `server` replaces
    the document's own first server.

    Raises: DefinitionRefused.
    """
    path, method, item, operation = _get_operation(document, operation_id)
    properties: dict[str, Any] = {}
    required: list[str] = []
    query: dict[str, str] = {}
    url = _resolve_base_url(document, server) + path
    for parameter in [*_get_list_field(item, "parameters"), *_get_list_field(operation, "parameters")]:
        given = _dereference_schema(document, parameter)
        name, where = str(given.get("name", "")), given.get("in")
        if where not in ("path", "query"):
            if given.get("required"):
                raise DefinitionRefused(detail=f"it needs {name[:64]} in its {str(where)[:20]}")
            continue
        argument = _make_argument_name(name, properties)
        properties[argument] = _with_description(
            _dereference_schema(document, given.get("schema", {})), given
        )
        if where == "path":
            url = url.replace("{" + name + "}", "{" + argument + "}")
        else:
            query[name] = argument
        if where == "path" or given.get("required"):
            required.append(argument)
    if len(url) > LONGEST_URL:
        raise DefinitionRefused(detail=f"its address is longer than {LONGEST_URL} characters")
    body, field = _parse_request_body(document, operation, properties, required)
    request = HttpRequest(method=method.upper(), url=url, query=query, body=body, body_field=field)  # type: ignore[arg-type]
    description = str(operation.get("description") or operation.get("summary") or operation_id)[:4_000]
    return Operation(
        request=request, description=description, output_schema=_parse_response_schema(document, operation),
        input_schema={"type": "object", "properties": properties, "required": required,
                      "additionalProperties": False},
    )  # fmt: skip


def _encode_path_segment(name: str, arguments: Mapping[str, Any]) -> str:
    """Encode one argument as one path segment, which it can neither end nor leave."""
    text = _format_scalar(name, arguments.get(name))
    if text in ("", ".", ".."):
        raise DefinitionRefused(detail=f"the argument {name} cannot stand in an address")
    return quote(text, safe="")


def _format_scalar(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise DefinitionRefused(detail=f"the argument {name} is no text and no number")


def _check_headers(request: HttpRequest) -> None:
    names = [name.lower() for name in request.headers]
    for name in (*names, request.key_header.lower()):
        if name and (name in _OWN_HEADERS or not _HEADER.fullmatch(name)):
            raise DefinitionRefused(detail=f"the header {name[:64]} is not yours to set")
    if any(not value.isprintable() or not value.isascii() for value in request.headers.values()):
        raise DefinitionRefused(detail="a header's value is printable ASCII")
    if request.secret and (
        not _HEADER.fullmatch(request.secret_header) or request.secret_header.lower() in ("host", "cookie")
    ):
        raise DefinitionRefused(detail="the secret's header is none")
    if request.secret and request.secret_form.count("{secret}") != 1:
        raise DefinitionRefused(detail="the secret's form holds {secret} once")


def _get_operation(
    document: Mapping[str, Any], operation_id: str
) -> tuple[str, str, dict[str, Any], dict[str, Any]]:
    if not str(document.get("openapi", "")).startswith("3."):
        raise DefinitionRefused(detail="this is no OpenAPI 3 document")
    paths = document.get("paths")
    for path, item in (paths if isinstance(paths, dict) else {}).items():
        for method in METHODS:
            operation = item.get(method) if isinstance(item, dict) else None
            if isinstance(operation, dict) and operation.get("operationId") == operation_id:
                return str(path), method, item, operation
    raise DefinitionRefused(detail=f"the document has no operation {operation_id[:100]}")


def _resolve_base_url(document: Mapping[str, Any], server: str) -> str:
    if server:
        return server.rstrip("/")
    servers = document.get("servers")
    first = servers[0] if isinstance(servers, list) and servers and isinstance(servers[0], dict) else {}
    return str(first.get("url", "")).rstrip("/")


def _make_argument_name(name: str, taken: Mapping[str, Any]) -> str:
    found = re.sub(r"[^A-Za-z0-9_]", "_", name)[:64]
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", found) or found in taken:
        raise DefinitionRefused(detail=f"its parameter {name[:64]!r} makes no argument of its own")
    return found


def _with_description(schema: dict[str, Any], parameter: Mapping[str, Any]) -> dict[str, Any]:
    words = parameter.get("description")
    return {**schema, "description": str(words)[:1_000]} if words and "description" not in schema else schema


def _parse_request_body(
    document: Mapping[str, Any], operation: Mapping[str, Any], properties: dict[str, Any], required: list[str]
) -> tuple[str, str]:
    """Return the form of the body, and add its members to the arguments."""
    if "requestBody" not in operation:
        return "none", ""
    given = _dereference_schema(document, operation["requestBody"])
    content = _get_object_field(given, "content")
    if "application/json" not in content:
        raise DefinitionRefused(detail="its body is not JSON")
    schema = _dereference_schema(document, _get_object_field(content, "application/json").get("schema", {}))
    members = schema.get("properties")
    mixed = any(word in schema for word in ("allOf", "anyOf", "oneOf"))
    if isinstance(members, dict) and schema.get("type", "object") == "object" and not mixed:
        for name, member in members.items():
            if name in properties:
                raise DefinitionRefused(detail=f"{name[:64]} is a parameter and a member of the body")
            properties[name] = member
        required.extend(str(name) for name in _get_list_field(schema, "required"))
        return "rest", ""
    field = _make_argument_name("body", properties)
    properties[field] = schema
    if given.get("required"):
        required.append(field)
    return "field", field


def _parse_response_schema(document: Mapping[str, Any], operation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of the first success response, or an empty schema if there is none."""
    responses = operation.get("responses")
    for status, response in (responses if isinstance(responses, dict) else {}).items():
        if not str(status).startswith("2"):
            continue
        content = _get_object_field(_dereference_schema(document, response), "content")
        schema = _get_object_field(content, "application/json").get("schema")
        if schema is not None:
            return _dereference_schema(document, schema)
    return {}


def _get_list_field(holder: Mapping[str, Any], field: str) -> list[Any]:
    """Return the list in a field, or an empty list if the field is missing.

    Raises: DefinitionRefused.
    """
    found = holder.get(field)
    if found is not None and not isinstance(found, list):
        raise DefinitionRefused(detail=f"the field {field} is no list")
    return found or []


def _get_object_field(holder: Mapping[str, Any], field: str) -> dict[str, Any]:
    """Return the object in a field, or an empty object if the field is missing.

    Raises: DefinitionRefused.
    """
    found = holder.get(field)
    if found is not None and not isinstance(found, dict):
        raise DefinitionRefused(detail=f"the field {field} is no object")
    return found or {}


def _dereference_schema(document: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """Resolve the references of a value into its own document, within bounds; others are refused."""
    left = [MOST_NODES]
    found = _inline_references(document, value, DEEPEST, left)
    return found if isinstance(found, dict) else {}


def _inline_references(document: Mapping[str, Any], value: Any, depth: int, left: list[int]) -> Any:
    left[0] -= 1
    if depth <= 0 or left[0] <= 0:
        raise DefinitionRefused(detail="the document is nested too deep, or refers to itself")
    if isinstance(value, list):
        return [_inline_references(document, item, depth - 1, left) for item in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref")
    if isinstance(reference, str):
        return _inline_references(document, _resolve_reference(document, reference), depth - 1, left)
    return {str(key): _inline_references(document, item, depth - 1, left) for key, item in value.items()}


def _resolve_reference(document: Mapping[str, Any], reference: str) -> Any:
    if not reference.startswith("#/"):
        raise DefinitionRefused(detail="the document refers to another one")
    found: Any = document
    for part in reference[2:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict) or key not in found:
            raise DefinitionRefused(detail=f"the document has nothing at {reference[:100]}")
        found = found[key]
    return found
