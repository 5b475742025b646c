"""A tool is one decorated function: what is derived from it."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import Field, ValidationError

from orchestrator.core.common.argument_parsing import validate_against_schema
from orchestrator.core.domain.tool_spec import Reversibility, Risk
from orchestrator.outbound.gateways.async_executor import EffectLoop
from orchestrator.tools.gateways.dispatcher import ToolGateway
from orchestrator.tools.gateways.egress.service_client import ServiceResponse, ToolContext
from orchestrator.tools.gateways.registry import Tool, ToolResult, shipped_tools, tool
from tests.doors.gateways.effects import PATIENCE, SALT, ScriptedPermit, call_tool, read
from tests.proves import proves
from traces.core.canonical import canonical_model


class Greeting(ToolResult):
    text: str


@tool(
    name="test.greet",
    category="test",
    capability="greeting",
    risk=Risk.READ_ONLY,
    reversibility=Reversibility.PURE,
)
def greet(name: Annotated[str, Field(max_length=9)], title: Literal["Dr", "Ms"] | None = None) -> Greeting:
    """Greet somebody.

    Politely.
    """
    return Greeting(text=f"Hello {title or ''} {name}")


@proves("R-TOOL-20", part="derived schema")
def test_the_schemas_come_from_the_hints() -> None:
    spec = greet.spec
    assert spec.input_schema == {
        "type": "object",
        "additionalProperties": False,
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "maxLength": 9},
            "title": {"anyOf": [{"enum": ["Dr", "Ms"], "type": "string"}, {"type": "null"}]},
        },
    }
    assert validate_against_schema(spec.output_schema, {"text": "x"}) is None
    assert validate_against_schema(spec.output_schema, {}) is not None
    assert spec.description == "Greet somebody.\n\nPolitely."
    assert (spec.local, spec.lookup, greet.takes_context) == (True, False, False)


def test_the_function_stays_a_function() -> None:
    assert greet("Ada").text == "Hello  Ada"


def test_an_async_tool_declares_its_answer_and_its_look_up() -> None:
    @tool(
        name="test.fetch",
        category="test",
        capability="fetch",
        risk=Risk.NETWORK,
        reversibility=Reversibility.REVERSIBLE,
        service="INTERLOCK_DEMO_URL",
    )
    async def fetch(context: ToolContext, id: str) -> ServiceResponse[Greeting]:  # noqa: A002 - the argument's name
        """Fetch."""
        return await context.get("/{}", id)

    async def found(_context: ToolContext, _arguments: object) -> ServiceResponse[Greeting] | None:
        return None

    before = fetch.spec
    fetch.lookup(found)
    assert (before.lookup, fetch.spec.lookup) == (False, True)
    assert not fetch.spec.local
    assert list(fetch.spec.input_schema["properties"]) == ["id"]
    assert validate_against_schema(fetch.spec.output_schema, {"text": "x"}) is None


def test_an_undeclared_or_wrong_field_is_refused() -> None:
    with pytest.raises(ValidationError):
        tool(
            name="Not A Name",
            category="t",
            capability="t",
            risk=Risk.NETWORK,
            reversibility=Reversibility.PURE,
        )(greet.function)


@proves("R-TOOL-1", part="shipped specifications")
def test_every_shipped_tool_is_whole() -> None:
    shipped = shipped_tools()
    assert len(shipped) >= 9
    for name, declared in shipped.items():
        spec = declared.spec
        assert spec.name == name
        assert spec.description
        assert canonical_model(spec) == canonical_model(type(spec).model_validate_json(canonical_model(spec)))
        if spec.verifier is not None and spec.verifier.read_back is not None:
            reader = shipped[spec.verifier.read_back.tool].spec
            assert not reader.is_mutating
            assert set(spec.verifier.read_back.arguments) == set(reader.input_schema["properties"])


@proves("R-TOOL-2", part="shipped tools")
@proves("R-TOOL-3", part="shipped tools")
def test_whatever_changes_something_is_gated() -> None:
    gated = {name for name, declared in shipped_tools().items() if declared.spec.needs_gate}
    mutating = {name for name, declared in shipped_tools().items() if declared.spec.is_mutating}
    local = {name for name, declared in shipped_tools().items() if declared.spec.risk is Risk.LOCAL_WRITE}
    assert mutating == gated | local
    assert local == {
        "email.draft", "files.apply_diff", "files.restore", "memory.propose", "review.request",
        "sandbox.script",
    }  # fmt: skip


@proves("R-TOOL-3", part="what can be taken back says how")
def test_whatever_is_compensable_names_a_way_back_that_fits() -> None:
    shipped = {name: declared.spec for name, declared in shipped_tools().items()}
    compensable = [s for s in shipped.values() if s.reversibility is Reversibility.COMPENSABLE]
    assert {spec.name for spec in compensable} >= {"stock.reserve", "payments.authorize"}
    for spec in compensable:
        assert spec.compensation is not None
        undo = shipped[spec.compensation.tool]
        given = {*spec.compensation.arguments, *spec.compensation.constants}
        assert undo.honours_keys
        assert set(undo.input_schema["required"]) <= given <= set(undo.input_schema["properties"])


# What takes another's change back needs no way back of its own; a draft and a question are looked at, or not.
SEEN_BY_NOBODY_OUTSIDE = {"email.draft", "review.request"}


@proves("R-TOOL-3", part="what changes something says how it is taken back, or why by nothing")
def test_whatever_can_be_taken_back_says_by_what_or_takes_something_back_itself() -> None:
    shipped = [declared.spec for declared in shipped_tools().values()]
    undoing = {spec.compensation.tool for spec in shipped if spec.compensation is not None}
    bare = {
        spec.name
        for spec in shipped
        if spec.reversibility is Reversibility.REVERSIBLE and spec.compensation is None
    }
    assert bare == SEEN_BY_NOBODY_OUTSIDE | (bare & undoing)
    assert not SEEN_BY_NOBODY_OUTSIDE & undoing


@pytest.mark.parametrize(
    ("result", "error"),
    [(ValueError("sk-abcdefghijklmnopqrstuvwxyz012345"), "crashed"), ("x" * 300_000, "malformed")],
)
def test_a_tools_own_fault_is_an_outcome(loop: EffectLoop, result: object, error: str) -> None:
    def misbehave() -> object:
        """Misbehave."""
        if isinstance(result, Exception):
            raise result
        return result

    declared = Tool(
        misbehave,
        {
            "name": "test.bad",
            "category": "t",
            "capability": "t",
            "risk": "read_only",
            "reversibility": "pure",
        },
    )
    gateway = ToolGateway(tools=lambda: {"test.bad": declared})
    effect = call_tool("clock.now", b"{}").evolve(tool="test.bad")
    told = read(gateway.start(loop, effect, b"{}", declared.spec, SALT, ScriptedPermit()).result(PATIENCE))
    assert told.event.error == error
    assert not any(b"sk-abc" in body for body in told.bodies.values())


def test_a_tool_that_is_not_there_is_refused(loop: EffectLoop) -> None:
    gateway = ToolGateway(tools=dict)
    spec = shipped_tools()["clock.now"].spec
    told = read(
        gateway.start(loop, call_tool("clock.now", b"{}"), b"{}", spec, SALT, ScriptedPermit()).result(
            PATIENCE
        )
    )
    assert (told.event.error, told.event.sent) == ("refused", False)
