"""A run without a database: the core is fed events, and what it asks of the world is answered by whoever
plays."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

from budgets.core.pricing import ModelPrice
from orchestrator.core.common.goal import Goal
from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.domain.boundary import Boundary
from orchestrator.core.domain.content_store import ContentStore
from orchestrator.core.domain.effects import AskApproval, AskPerson, CallModel, CallTool, Effect
from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.core.domain.manifest import Manifest, Pins
from orchestrator.core.domain.run_events import (
    AnyEvent,
    Headroom,
    ModelReplied,
    Started,
    ToolAnswered,
    ToolRequest,
)
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.engine.machine import CORE_VERSION, advance
from orchestrator.core.policy.rules import Policy
from orchestrator.core.policy.task_scope import scope_of
from orchestrator.core.workflow.node_protocol import AdvanceResult, Transition
from traces.core.canonical import canonical_outside, payload_digest

SALT = b"s" * 32
NIL = "0" * 64
START = datetime(2026, 1, 1, tzinfo=UTC)
# A policy that gates and denies nothing.
PERMISSIVE = Policy(after_untrusted="allow")
RUN = UUID(int=7)


def pins(tools: Mapping[str, ToolSpec], boundary: Boundary, prompts: tuple[str, ...]) -> Pins:
    """Pins over these tools, a scripted model that costs nothing."""
    profile = ModelProfile(name="m", provider="scripted", model="m", price=ModelPrice.free("scripted", "m"))
    return Pins(
        boundary=boundary,
        boundary_digest=NIL,
        tools=tuple(tools.values()),
        tool_digests=dict.fromkeys(tools, NIL),
        registry_digest=NIL,
        profiles=(profile,),
        prompts=dict.fromkeys(prompts, "Work."),
        prompt_versions=dict.fromkeys(prompts, 1),
        price_book="free",
        policy=PERMISSIVE,
    )


def manifest(
    graph: CompiledGraph, held: Pins, limits: Mapping[str, int], goal: Goal | None = None
) -> Manifest:
    """A manifest for the graph with these limits."""
    given = goal or Goal(objective="how much is 2 + 2?", inputs={"order_id": "A-1"})
    return Manifest(
        run=RUN,
        task=UUID(int=1),
        tenant=UUID(int=2),
        principal=UUID(int=3),
        owner=UUID(int=4),
        scopes=("submit",),
        goal=given,
        goal_digest=NIL,
        graph=graph.digest,
        pins=held,
        pins_digest=NIL,
        limits={name: Decimal(amount) for name, amount in limits.items()},
        asked={},
        scope=scope_of(given),
        workflow=graph.spec.slug,
        workflow_version=1,
        code_version="test",
        core_version=CORE_VERSION,
        scripted=True,
        admitted_at=START,
    )


@dataclass
class Simulation:
    """One simulated run: `open` are the effects that were asked for and not answered."""

    graph: CompiledGraph
    manifest: Manifest
    state: RunState
    now: datetime = START
    contents: dict[str, bytes] = field(default_factory=dict)
    open: dict[str, Effect] = field(default_factory=dict)
    asked: list[Effect] = field(default_factory=list)
    transitions: list[Transition] = field(default_factory=list)
    fed: list[tuple[RunState, AnyEvent, Headroom, AdvanceResult]] = field(default_factory=list)
    grants: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, graph: CompiledGraph, held: Manifest) -> "Simulation":
        """A run that has just been admitted."""
        return cls(graph=graph, manifest=held, state=RunState(position=graph.entry, limits=dict(held.limits)))

    def keep(self, value: Any) -> str:
        """Put content where the core finds it."""
        body = value if isinstance(value, bytes) else canonical_outside(value)
        digest = payload_digest(SALT, body)
        self.contents[digest] = body
        return digest

    def start(self) -> AdvanceResult:
        """Feed Started."""
        return self.feed(Started(at=self.now))

    def feed(self, event: AnyEvent, room: Headroom | None = None, *, after_ms: int = 10) -> AdvanceResult:
        """Feed one event and take over what comes of it."""

        self.now += timedelta(milliseconds=after_ms)
        before, given, headroom = self.state, event.evolve(at=self.now), room or Headroom()
        walk = advance(self.graph, self.manifest, before, given, headroom, ContentStore(SALT, self.contents))
        self.contents.update(walk.made)
        self.state = walk.state
        self.transitions.extend(walk.transitions)
        self.fed.append((before, given, headroom, walk))
        for effect in walk.effects:
            self.asked.append(effect)
            if effect.kind in ("call_model", "call_tool") and effect.id in walk.state.pending:
                self.open[effect.id] = effect
        self.open = {name: effect for name, effect in self.open.items() if name in walk.state.pending}
        return walk

    def reply(self, *calls: tuple[str, Any], text: str = "", **more: Any) -> AdvanceResult:
        """Answer the open model call: with calls (name, arguments) or a text."""
        effect = next(e for e in self.open.values() if isinstance(e, CallModel))
        return self.feed(self.model_reply(effect, *calls, text=text, **more))

    def model_reply(
        self, effect: CallModel, *calls: tuple[str, Any], text: str = "", **more: Any
    ) -> ModelReplied:
        """A reply to a model call."""
        written = [
            {
                "id": f"p{n}",
                "name": name,
                "arguments": arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode(),
            }
            for n, (name, arguments) in enumerate(calls)
        ]
        return ModelReplied(
            at=self.now,
            effect=effect.id,
            reply=self.keep({"text": text, "calls": written}),
            answer=self.keep(text.encode()) if text and not calls else None,
            requests=tuple(
                ToolRequest(
                    call_id=call["id"], name=call["name"], arguments=self.keep(call["arguments"].encode())
                )
                for call in written
            ),
            usage={"input_tokens": Decimal(50), "output_tokens": Decimal(5)},
            **more,
        )

    def answer(self, value: Any, index: int = 0) -> AdvanceResult:
        """Answer an open tool call."""
        effects = [e for e in self.open.values() if isinstance(e, CallTool)]
        body = self.keep(value)
        return self.feed(ToolAnswered(at=self.now, effect=effects[index].id, observation=body, size=10))

    @property
    def requests(self) -> list[AskApproval | AskPerson]:
        """Requests that are open now."""
        asked = [e for e in self.asked if isinstance(e, AskApproval | AskPerson)]
        return [e for e in asked if str(e.request) in self.state.gates]

    def said(self, kind: str) -> list[Any]:
        """The bodies of all events of a kind so far."""
        return [word.body for step in self.transitions for word in step.said if word.body.kind == kind]  # type: ignore[attr-defined]
