"""A call's arguments on their way out: opened, and read by the tool's own types."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from pydantic import BaseModel, ValidationError

from orchestrator.core.common.argument_parsing import (
    Arguments,
    find_schema_mismatches,
    parse_arguments,
    validate_no_redactions,
)
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.outbound.gateways.effect_result import ContentSink
from orchestrator.tools.gateways.egress.service_client import CallFailed
from orchestrator.tools.gateways.registry import Tool


class OpenedArguments(NamedTuple):
    """The arguments as they are sent, and the values that were opened for them with their references;
    `known` are the other sealed values of the run."""

    arguments: bytes
    values: Mapping[str, str]
    known: Mapping[str, str] = MappingProxyType({})


class ArgumentOpener(Protocol):
    """Opens what is sealed in the arguments of a call, at the moment of sending."""

    def open_arguments(self, arguments: bytes) -> OpenedArguments:
        """The arguments as they are sent. Raises CallFailed; nothing was sent then."""
        ...


def open_arguments(
    arguments: bytes, spec: ToolSpec, sealed: ArgumentOpener | None, keeper: ContentSink
) -> bytes:
    """The arguments as they are sent, their sealed values opened; the keeper keeps none of these. A value
    that nobody could look at before is held against the tool's schema now. Raises CallFailed."""
    if sealed is None:
        return arguments
    opened = sealed.open_arguments(arguments)
    keeper.opened = {**opened.known, **opened.values}
    if opened.values and (places := find_schema_mismatches(spec.input_schema, opened.arguments)):
        named = ", ".join(place[:80] for place in places[:8])
        detail = f"a sealed value does not fit what the tool takes at {named}"
        raise CallFailed("refused", sent=False, detail=detail.encode("utf-8", "backslashreplace"))
    return opened.arguments


def check_sendable(arguments: bytes) -> None:
    """Raises CallFailed where the mark of a redaction stands in place of a value: whatever led here, it is
    never sent as one."""
    parsed = parse_arguments(arguments)
    fault = validate_no_redactions(parsed.value) if isinstance(parsed, Arguments) else None
    if fault is not None:
        raise CallFailed("refused", sent=False, detail=fault.detail.encode("utf-8", "backslashreplace"))


def read_arguments(declared: Tool[Any, Any], arguments: bytes) -> BaseModel:
    """The arguments, by the function's own types; nothing is coerced. Raises CallFailed."""
    try:
        return declared.arguments.model_validate_json(arguments, strict=True)
    except ValidationError as error:
        found = [
            f"{'/'.join(map(str, item['loc']))}: {item['msg']}"
            for item in error.errors(include_url=False)[:8]
        ]
        raise CallFailed(
            "refused", sent=False, detail="; ".join(found).encode("utf-8", "backslashreplace")
        ) from error


def keywords_of(values: BaseModel) -> dict[str, Any]:
    return {name: getattr(values, name) for name in type(values).model_fields}
