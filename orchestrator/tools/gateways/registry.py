"""Declares tools: a tool is one decorated, typed function (R-TOOL-20).

Its schemas are derived from the function; its version is what the decorator declares.

    @tool(name="clock.now", category="lookup", capability="time",
          risk=Risk.READ_ONLY, reversibility=Reversibility.PURE)
    def now(zone: Annotated[str, Field(max_length=64)] = "UTC") -> Now:
        \"\"\"The current time in a named zone.\"\"\"

A plain function is local: it never waits and bounds its own work. An async function may take a ToolContext
as its first argument and call the one service that it names by `service`; it returns
`ServiceResponse[Model]`, the bytes as they came.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import (
    Any,
    Generic,
    Literal,
    ParamSpec,
    Required,
    TypedDict,
    TypeVar,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel, ConfigDict, TypeAdapter, create_model

from orchestrator.core.domain.tool_spec import (
    Compensation,
    Egress,
    QuorumStep,
    Reversibility,
    Risk,
    ToolSpec,
    Verifier,
)
from orchestrator.tools.gateways import builtin, company
from orchestrator.tools.gateways.egress.service_client import ServiceResponse, ToolContext

P = ParamSpec("P")
R = TypeVar("R")
LookUp = Callable[[ToolContext, Any], Awaitable["ServiceResponse[Any] | None"]]


class ToolResult(BaseModel):
    """Base class of tool results: frozen; a service may return more members than we read."""

    model_config = ConfigDict(frozen=True)


class ToolDescription(TypedDict, total=False):
    """The declaration of a tool without its risk class; see ToolSpec for the meaning of each member.

    `service` names the variable of its origin. `lacks` returns what this machine lacks for the tool, empty
    where nothing. `unset` returns what is not configured for the tool; it is called in the tenant's context
    when a run is admitted.
    """

    name: Required[str]
    category: Required[str]
    capability: Required[str]
    service: str
    lacks: Callable[[], str]
    unset: Callable[[], str]
    version: int
    side_effects: str
    approval: Literal["by_risk", "always", "never"]
    scopes: tuple[str, ...]
    timeout_ms: int
    max_retries: int
    honours_keys: bool
    conclusive: bool
    error_means_no_effect: bool
    price_usd: Decimal
    rate_per_minute: int
    max_result_chars: int
    verifier: Verifier
    trust: Literal["trusted", "untrusted"]
    sensitive: tuple[str, ...]
    secrets: tuple[str, ...]
    parallel_safe: bool
    external: bool
    compensation: Compensation
    equivalents: tuple[str, ...]
    preconditions: tuple[str, ...]
    effects: tuple[str, ...]
    effect_sentence: str
    blast_radius: str
    conflict_keys: tuple[str, ...]
    claims: tuple[str, ...]
    facts: dict[str, str]
    amount: str
    currency: str
    quorum: tuple[QuorumStep, ...]
    queue: str
    egress: Egress
    isolation: Literal["none", "copy", "machine"]


class Declaration(ToolDescription, total=False):
    """The whole declaration: also the tool's risk and reversibility."""

    risk: Required[Risk]
    reversibility: Required[Reversibility]


# A lookup at a service: pure, so it may run in parallel and often.
READING: Mapping[str, Any] = {
    "risk": Risk.READ_ONLY,
    "reversibility": Reversibility.PURE,
    "external": True,
    "parallel_safe": True,
    "rate_per_minute": 600,
}


# Declared members that are not part of the pinned version.
UNPINNED = ("service", "lacks", "unset")


def _return_empty_text() -> str:
    return ""


class Tool(Generic[P, R]):
    """A declared tool: its specification and its function, callable as before."""

    def __init__(self, function: Callable[P, R], declared: Mapping[str, Any]) -> None:
        self.function = function
        self.waits = inspect.iscoroutinefunction(function)
        self.service: str | None = declared.get("service")
        self.lacks: Callable[[], str] = declared.get("lacks", _return_empty_text)
        self.unset: Callable[[], str] = declared.get("unset", _return_empty_text)
        hints = get_type_hints(function, include_extras=True)
        result = hints.pop("return")
        self.takes_context = next(iter(hints.values()), None) is ToolContext
        self.arguments = _argument_model(function, hints)
        self.look_up: LookUp | None = None
        self.spec = ToolSpec.model_validate(
            {
                "version": 1, **{name: value for name, value in declared.items() if name not in UNPINNED},
                "description": inspect.cleandoc(function.__doc__ or ""), "local": not self.waits,
                "input_schema": input_schema(self.arguments), "output_schema": output_schema(result),
            }
        )  # fmt: skip

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself."""
        return self.function(*args, **kwargs)

    def lookup(self, function: LookUp) -> LookUp:
        """Declare how an effect of this tool is looked up.

        The function returns the answer that the effect would have given, or None when there is no such
        effect.
        """
        self.look_up = function
        self.spec = self.spec.evolve(lookup=True)
        return function


def tool(**declared: Unpack[Declaration]) -> Callable[[Callable[P, R]], Tool[P, R]]:
    """Make a tool of a function. The docstring is the description.

    Raises: pydantic's ValidationError for a bad declaration.
    """
    return lambda function: Tool(function, declared)


def read_only_tool(**declared: Unpack[ToolDescription]) -> Callable[[Callable[P, R]], Tool[P, R]]:
    """Make a tool of a function that only looks something up at a service; see `tool` and READING."""
    return lambda function: Tool(function, {**READING, **declared})


@cache
def shipped_tools() -> Mapping[str, Tool[Any, Any]]:
    """Return the tools of `builtin` and of `company`, by name.

    Raises: ValueError where two have the same name.
    """
    found: dict[str, Tool[Any, Any]] = {}
    for module in sorted(
        module.name
        for package in (builtin, company)
        for module in iter_modules(package.__path__, f"{package.__name__}.")
    ):
        members = vars(import_module(module))
        for declared in [member for member in members.values() if isinstance(member, Tool)]:
            if declared.spec.name in found and found[declared.spec.name] is not declared:
                message = f"two tools are called {declared.spec.name}"
                raise ValueError(message)
            found[declared.spec.name] = declared
    return dict(sorted(found.items()))


@cache
def particular_tools() -> tuple[Tool[Any, Any], ...]:
    """Return the bundled tools that have dependencies on the machine, or may run isolated by it."""
    return tuple(
        declared
        for declared in shipped_tools().values()
        if declared.lacks is not _return_empty_text or declared.spec.isolation == "machine"
    )


def input_schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of a call's arguments: closed, strict types, no titles."""
    schema: dict[str, Any] = _strip_schema_titles(arguments.model_json_schema())
    return schema


def output_schema(result: Any) -> dict[str, Any]:
    """Return the JSON Schema of a result: of the model inside `ServiceResponse[…]`, or of the type itself."""
    told = get_args(result)[0] if get_origin(result) is ServiceResponse else result
    schema: dict[str, Any] = _strip_schema_titles(TypeAdapter(told).json_schema(mode="serialization"))
    return schema


def _argument_model(function: Callable[..., Any], hints: Mapping[str, Any]) -> type[BaseModel]:
    parameters = inspect.signature(function).parameters
    fields: dict[str, Any] = {
        name: (hint, ... if parameters[name].default is inspect.Parameter.empty else parameters[name].default)
        for name, hint in hints.items()
        if hint is not ToolContext
    }
    config = ConfigDict(extra="forbid", strict=True, frozen=True)
    return create_model(function.__name__, __config__=config, **fields)


def _strip_schema_titles(schema: Any, *, names: bool = False) -> Any:
    """Return the schema without titles and null defaults.

    Under `properties` and `$defs` the keys are names, not keywords.
    """
    if isinstance(schema, list):
        return [_strip_schema_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _strip_schema_titles(value, names=not names and key in ("properties", "$defs"))
        for key, value in schema.items()
        if names or (key != "title" and (key, value) != ("default", None))
    }
