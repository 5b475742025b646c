"""The neutral request that the core compiles: one canonical document for every provider (R-LOOP-11)."""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from orchestrator.core.common.frozen_model import FrozenModel

WIRE_NAME = 64
UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")


class AskedCall(FrozenModel):
    """A call of an earlier reply; `arguments` is the text as the model wrote it."""

    id: str
    name: str
    arguments: str


class UserTurn(FrozenModel):
    role: Literal["user"]
    text: str


class AssistantTurn(FrozenModel):
    role: Literal["assistant"]
    text: str = ""
    calls: tuple[AskedCall, ...] = ()


class ToolTurn(FrozenModel):
    role: Literal["tool"]
    call: str
    name: str
    text: str


Turn = Annotated[UserTurn | AssistantTurn | ToolTurn, Field(discriminator="role")]


class OfferedTool(FrozenModel):
    name: str
    description: str
    input_schema: dict[str, Any] = Field(alias="schema")


class NeutralRequest(FrozenModel):
    """The request to a model. `max_output_tokens` is a wish; the effect's limit is binding."""

    v: Literal[1]
    role: str
    profile: str
    system: str
    messages: tuple[Turn, ...]
    tools: tuple[OfferedTool, ...] = ()
    output_schema: dict[str, Any] | None = None
    max_output_tokens: int


class Conversation(FrozenModel):
    """The conversation part of a request.

    The offered tools, which are most of a request, are not parsed.
    """

    model_config = ConfigDict(extra="ignore")

    v: Literal[1]
    system: str
    messages: tuple[Turn, ...]


def read_conversation(body: bytes) -> Conversation:
    """Parse the conversation from the core's bytes.

    Raises: ValidationError for anything else.
    """
    return Conversation.model_validate_json(body)


def read_request(body: bytes) -> NeutralRequest:
    """Parse the request from the core's bytes.

    Raises: ValidationError for anything else.
    """
    return NeutralRequest.model_validate_json(body)


class WireNames:
    """Maps tool names to the form that providers accept ([a-zA-Z0-9_-]{1,64}) and back, one-to-one."""

    def __init__(self, names: Iterable[str]) -> None:
        self._out: dict[str, str] = {}
        self._back: dict[str, str] = {}
        for name in sorted(dict.fromkeys(names)):
            wire = self._free(_sanitize_name(name))
            self._out[name] = wire
            self._back[wire] = name

    def _free(self, wanted: str) -> str:
        candidate, number = wanted, 1
        while candidate in self._back:
            number += 1
            suffix = f"_{number}"
            candidate = wanted[: WIRE_NAME - len(suffix)] + suffix
        return candidate

    def out(self, name: str) -> str:
        """Return the name on the wire; a name that is not (or no longer) offered is only sanitized."""
        return self._out.get(name) or _sanitize_name(name)

    def back(self, wire: str) -> str:
        """Return our name for a wire name; a name that was not offered is unchanged, and the core refuses
        it.
        """
        return self._back.get(wire, wire)

    def mapping(self) -> Mapping[str, str]:
        """Return the mapping from our names to the wire names."""
        return dict(self._out)


def _sanitize_name(name: str) -> str:
    return UNSAFE.sub("_", name)[:WIRE_NAME] or "unnamed"
