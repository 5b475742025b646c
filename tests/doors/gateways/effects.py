"""Effects, prompts and permits for the gateways' tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from threading import Event
from typing import Any
from uuid import UUID

import orjson

from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.domain.effects import CallModel, CallTool
from orchestrator.core.domain.run_events import ModelFailed, ModelReplied, ToolAnswered, ToolFailed
from orchestrator.llm.gateways.catalog import ModelEnvironment
from orchestrator.llm.gateways.client import ModelGateway
from orchestrator.outbound.gateways.async_executor import EffectLoop
from orchestrator.outbound.gateways.effect_result import EffectResult
from orchestrator.outbound.gateways.send_authorization import SendRefused
from orchestrator.tools.gateways.dispatcher import ToolGateway
from orchestrator.tools.gateways.registry import shipped_tools
from traces.core.canonical import canonical_outside, compute_digest, payload_digest

SALT = b"s" * 32
RUN = UUID(int=7)
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
# Seconds, for what is to come in any case. Whoever asks its first model loads the libraries for it, too, on a
# machine that has other things to do.
PATIENCE = 100
# What a call has where its deadline is not what a test is about.
TIMEOUT_MS = 60_000
RESERVE = {"input_tokens": Decimal(5_000), "output_tokens": Decimal(500), "model_turns": Decimal(1)}


@dataclass(kw_only=True)
class ScriptedPermit:
    """A permit that answers as it is told, and counts how often it was asked."""

    reason: str | None = None
    asked: int = 0
    run: UUID = RUN

    def check(self) -> SendRefused | None:
        """As told."""
        self.asked += 1
        return None if self.reason is None else SendRefused(reason=self.reason)


@dataclass(kw_only=True)
class Watching:
    """An audience that keeps what it is told."""

    here: bool = True
    wanted: str = ""
    told: list[tuple[int, str]] = field(default_factory=list)
    heard: Event = field(default_factory=Event)

    def there(self) -> bool:
        """As told."""
        return self.here

    def tell(self, at: int, text: str) -> None:
        """Keep it."""
        self.told.append((at, text))
        if text == self.wanted:
            self.heard.set()


def prompt(
    text: str = "GOAL\nSay hello.",
    *,
    history: Sequence[dict[str, Any]] = (),
    tools: Sequence[dict[str, Any]] = (),
    role: str = "executor",
    output_schema: dict[str, Any] | None = None,
) -> bytes:
    """A neutral request as the core compiles it."""
    return canonical_outside(
        {
            "v": 1,
            "role": role,
            "profile": "p",
            "system": "You are careful.",
            "messages": [{"role": "user", "text": text}, *history],
            "tools": list(tools),
            "output_schema": output_schema,
            "max_output_tokens": 400,
        }
    )


def offered(*names: str) -> list[dict[str, Any]]:
    """Tools on offer, by name."""
    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    return [{"name": name, "description": f"does {name}", "schema": schema} for name in names]


def call_model(
    request: bytes, *, timeout_ms: int = TIMEOUT_MS, attempt: int = 1, **changes: Any
) -> CallModel:
    """The effect that asks with `request`."""
    fields: dict[str, Any] = {
        "id": "e" * 32,
        "node": "act",
        "role": "executor",
        "profile": "p",
        "request": payload_digest(SALT, request),
        "max_output_tokens": 300,
        "reserve": RESERVE,
        "timeout_ms": timeout_ms,
        "attempt": attempt,
    }
    return CallModel(**(fields | changes))


def call_tool(name: str, arguments: bytes, *, timeout_ms: int = TIMEOUT_MS, key: str = "key-1") -> CallTool:
    """The effect that calls a shipped tool with these bytes."""
    spec = shipped_tools()[name].spec
    return CallTool(
        id="f" * 32,
        node="invoke",
        call="c1",
        tool=name,
        tool_digest="0" * 64,
        arguments=payload_digest(SALT, arguments),
        argument_digest=compute_digest("arguments", arguments),
        key=key,
        reserve={},
        timeout_ms=timeout_ms,
        attempt=1,
        mutating=spec.is_mutating,
        honours_keys=spec.honours_keys,
        lookup=spec.lookup,
        conclusive=spec.conclusive,
        external=spec.external,
    )


@dataclass(frozen=True, kw_only=True)
class Told:
    """An outcome, read: the event, and its content by digest."""

    event: Any
    bodies: dict[str, bytes]

    def text(self, digest: str | None) -> str:
        """The content of a digest, as text."""
        assert digest is not None
        return self.bodies[digest].decode()

    def document(self, digest: str | None) -> Any:
        """The content of a digest, as JSON."""
        return orjson.loads(self.text(digest))


def read(performed: EffectResult) -> Told:
    """The outcome at noon; every digest the event names has its content, under the right digest."""
    event = performed.event(NOON)
    assert isinstance(event, ModelReplied | ModelFailed | ToolAnswered | ToolFailed)
    for name, body in performed.bodies.items():
        assert name == payload_digest(SALT, body)
    return Told(event=event, bodies=dict(performed.bodies))


def openai_at(url: str, **given: Any) -> tuple[ModelEnvironment, ModelProfile]:
    """An environment with a compatible server, and a profile pinned to it."""
    environment = ModelEnvironment(openai_base_url=url, openai_api_key="k", **given)
    return environment, ModelProfile(name="p", provider="openai", model="loopback-1", base_url=url)


def ask_model(
    loop: EffectLoop,
    environment: ModelEnvironment,
    profile: ModelProfile,
    request: bytes | None = None,
    **changes: Any,
) -> Told:
    """One model call, waited for."""
    body = prompt() if request is None else request
    gateway = ModelGateway(lambda: environment)
    effect = call_model(body, **changes)
    return read(gateway.start(loop, effect, body, profile, SALT, ScriptedPermit()).result(PATIENCE))


def use_tool(
    loop: EffectLoop, gateway: ToolGateway, name: str, arguments: dict[str, Any] | bytes, **changes: Any
) -> Told:
    """One tool call, waited for."""
    body = arguments if isinstance(arguments, bytes) else canonical_outside(arguments)
    spec = shipped_tools()[name].spec
    return read(
        gateway.start(loop, call_tool(name, body, **changes), body, spec, SALT, ScriptedPermit()).result(
            PATIENCE
        )
    )
